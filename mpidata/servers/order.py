"""The order in which all servers do the same, as server 0 decides it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

__all__ = ["Deed", "Do", "Order"]


class Do(IntEnum):
    """What the servers do."""

    STEP = 1  # a step by the mean of the next push of each of these trainers
    SEND = 2  # their parts of the weights to this trainer
    SAVE = 3  # their states to the first of these trainers
    TELL = 4  # nothing, but server 0 answers this trainer
    END = 5  # all trainers have left


class Deed(NamedTuple):
    """Something that all servers do, in the same order."""

    do: Do
    trainers: tuple[int, ...] = ()


class Order:
    """Decides what comes next, and who waits.

    A push counts once every server has its part of it. A trainer that rests, as it has nothing to train on for now, is
    waited for by nobody, until it pulls or pushes again: then it is as far as the slowest. Who saves waits for one that
    pauses, which is to save, too.

    Parameters
    ----------
    trainers, servers, spares : int
        How many there are; spares, the last ones of the trainers, push nothing at first.

    Attributes
    ----------
    version : int
        Steps so far.
    """

    def __init__(self, trainers: int, servers: int, spares: int = 0) -> None:
        self.version = 0
        self._staleness = -1  # nothing can be done yet
        self._had = [[0] * servers for _ in range(trainers)]  # pushes of a trainer that each server has
        self._applied = [0] * trainers
        self._clocks = [0] * trainers
        self._active = set(range(trainers - spares))
        self._trains = set(self._active)  # all but the spares that wait
        self._resting: dict[int, int] = {}
        self._left: set[int] = set()
        self._dead: set[int] = set()
        self._pulls: dict[int, int] = {}
        self._saves: dict[int, int] = {}  # the checkpoint that a trainer waits for
        self._settles: dict[int, int] = {}
        self._paused: set[int] = set()
        # The newest checkpoint in which a trainer takes no part, as it has joined since.
        self._absent: dict[int, int] = {}

    def begin(self, staleness: int, version: int) -> None:
        """Go on from a version, as all servers have their part.

        `staleness`: by how many pushes a trainer may be ahead of the slowest one when it pulls; 0: all push, then the
        mean counts.
        """
        self._staleness, self.version = staleness, version

    def had(self, trainer: int, server: int) -> None:
        """Take in that a server has one more push of a trainer."""
        if trainer in self._dead:
            return
        self._had[trainer][server] += 1
        if server == 0:  # which gets all that a trainer says in its order
            self._wake(trainer)

    def pull(self, trainer: int, pushes: int) -> None:
        """Take in that a trainer waits for the weights, with so many pushes of its own in them."""
        if trainer not in self._dead:
            self._wake(trainer)
            self._pulls[trainer] = pushes

    def rest(self, trainer: int, pushes: int) -> None:
        """Take in that a trainer has nothing to train on after so many pushes."""
        self._resting[trainer] = pushes
        self._paused.discard(trainer)

    def pause(self, trainer: int, pushes: int) -> None:
        """Take in that a trainer waits for others after so many pushes, and saves with them later if that is due."""
        if trainer not in self._dead:
            self.rest(trainer, pushes)
            self._paused.add(trainer)

    def absent(self, trainer: int, checkpoint: int) -> None:
        """Take in that a trainer takes part in no checkpoint up to this one."""
        self._absent[trainer] = checkpoint

    def save(self, trainer: int, pushes: int, checkpoint: int) -> None:
        """Take in that a trainer waits for the others after so many pushes, to save the state for a checkpoint."""
        if trainer not in self._dead:
            self.rest(trainer, pushes)
            self._saves[trainer] = checkpoint

    def withdraw(self, trainer: int, pushes: int) -> bool:
        """Take in that a trainer saves later, as `pause`; False where all have saved already."""
        if trainer not in self._saves:
            return False
        del self._saves[trainer]
        self.pause(trainer, pushes)
        return True

    def settle(self, trainer: int, pushes: int) -> None:
        """Take in that a trainer pauses, and waits until so many pushes of its own count."""
        if trainer not in self._dead:
            self.pause(trainer, pushes)
            self._settles[trainer] = pushes

    def leave(self, trainer: int, pushes: int) -> None:
        """Take in that a trainer has left after so many pushes."""
        self.rest(trainer, pushes)
        self._left.add(trainer)

    def died(self, trainer: int) -> None:
        """Take in that a trainer has died: from now on no further push of it counts."""
        self._dead.add(trainer)
        self._left.add(trainer)
        self._active.discard(trainer)
        self._saves.pop(trainer, None)
        self._pulls.pop(trainer, None)
        self._settles.pop(trainer, None)
        self._paused.discard(trainer)

    def ahead(self, trainer: int) -> int:
        """By how many pushes a trainer is ahead of the slowest one."""
        return self._clocks[trainer] - min((self._clocks[one] for one in self._active), default=self._clocks[trainer])

    def deeds(self) -> Iterator[Deed]:
        """Give what is to be done now; each is done before the next one is asked for."""
        for trainer, pushes in self._resting.items():
            if min(self._had[trainer]) >= pushes:
                self._active.discard(trainer)
        if self._staleness >= 0:
            yield from self._begun()
        if len(self._left) == len(self._clocks) and not self._active:
            yield Deed(Do.END)

    def _begun(self) -> Iterator[Deed]:
        yield from self._steps()
        for trainer, pushes in sorted(self._pulls.items()):
            if self._applied[trainer] >= pushes and self.ahead(trainer) <= self._staleness:
                del self._pulls[trainer]
                yield Deed(Do.SEND, (trainer,))
        for trainer, pushes in sorted(self._settles.items()):
            if self._applied[trainer] >= pushes:
                del self._settles[trainer]
                yield Deed(Do.TELL, (trainer,))
        if self._saves:
            yield from self._save(min(self._saves.values()))

    def _save(self, checkpoint: int) -> Iterator[Deed]:
        if any(self._absent.get(one, -1) < checkpoint for one in self._active | self._paused):
            return
        waiting = sorted(one for one, number in self._saves.items() if number == checkpoint)
        for trainer in waiting:
            del self._saves[trainer]
            self._wake(trainer)
        yield Deed(Do.SAVE, tuple(waiting))

    def _steps(self) -> Iterator[Deed]:
        living = [one for one in range(len(self._had)) if one not in self._dead]
        while ready := [one for one in living if min(self._had[one]) > self._applied[one]]:
            if self._staleness:
                ready = ready[:1]
            elif not self._active.issubset(ready):
                return
            for trainer in ready:
                self._applied[trainer] += 1
                self._clocks[trainer] += 1
            self.version += 1
            yield Deed(Do.STEP, tuple(ready))

    def _wake(self, trainer: int) -> None:
        self._resting.pop(trainer, None)
        self._paused.discard(trainer)
        if trainer not in self._active:
            # Without staleness, where all rest, one that comes first must not be behind a later one: each would wait.
            clocks = [self._clocks[one] for one in self._active or self._trains - self._left]
            slowest = min if self._active or self._staleness else max
            self._clocks[trainer] = max(self._clocks[trainer], slowest(clocks, default=0))
            self._active.add(trainer)
            self._trains.add(trainer)
