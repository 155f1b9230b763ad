"""The order of the actions of all servers, which server 0 decides."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

__all__ = ["ServerAction", "Do", "Order"]


class Do(IntEnum):
    """Actions of the servers."""

    STEP = 1  # make a step with the mean of the next push of each of these trainers
    SEND = 2  # send their parts of the weights to this trainer
    SAVE = 3  # send their states to the first of these trainers
    TELL = 4  # do nothing, but server 0 answers this trainer
    END = 5  # all trainers have left


class ServerAction(NamedTuple):
    """An action of all servers, which do them in the same order."""

    do: Do
    trainers: tuple[int, ...] = ()


class Order:
    """Decides what comes next, and who waits.

    A push counts once every server has its part. A trainer rests if it has nothing to train on for now: nobody waits
    for it until it pulls or pushes again, and it then counts as level with the slowest. A trainer that saves waits for
    one that pauses, because that one also saves.

    Parameters
    ----------
    trainers, servers, spares : int
        Their numbers; spares, which are the last trainers, push nothing at first.

    Attributes
    ----------
    version : int
        Number of steps so far.
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
        # The newest checkpoint in which a trainer takes no part, because it joined later.
        self._absent: dict[int, int] = {}

    def begin(self, staleness: int, version: int) -> None:
        """Start from a version, when all servers have their part.

        `staleness`: number of pushes that a trainer may be ahead of the slowest one when it pulls; 0: all push, then
        the mean counts.
        """
        self._staleness, self.version = staleness, version

    def had(self, trainer: int, server: int) -> None:
        """Note that a server has one more push of a trainer."""
        if trainer in self._dead:
            return
        self._had[trainer][server] += 1
        if server == 0:  # which gets a trainer's messages in order
            self._wake(trainer)

    def pull(self, trainer: int, pushes: int) -> None:
        """Note that a trainer waits for the weights, with this number of its own pushes in them."""
        if trainer not in self._dead:
            self._wake(trainer)
            self._pulls[trainer] = pushes

    def rest(self, trainer: int, pushes: int) -> None:
        """Note that a trainer has nothing to train on after this number of pushes."""
        self._resting[trainer] = pushes
        self._paused.discard(trainer)

    def pause(self, trainer: int, pushes: int) -> None:
        """Note that a trainer waits for others after this number of pushes, and saves with them later if due."""
        if trainer not in self._dead:
            self.rest(trainer, pushes)
            self._paused.add(trainer)

    def absent(self, trainer: int, checkpoint: int) -> None:
        """Note that a trainer takes part in no checkpoint up to this one."""
        self._absent[trainer] = checkpoint

    def save(self, trainer: int, pushes: int, checkpoint: int) -> None:
        """Note that a trainer waits for the others after this number of pushes, to save the state for a checkpoint."""
        if trainer not in self._dead:
            self.rest(trainer, pushes)
            self._saves[trainer] = checkpoint

    def withdraw(self, trainer: int, pushes: int) -> bool:
        """Note that a trainer saves later, like `pause`; False if all have saved already."""
        if trainer not in self._saves:
            return False
        del self._saves[trainer]
        self.pause(trainer, pushes)
        return True

    def settle(self, trainer: int, pushes: int) -> None:
        """Note that a trainer pauses, and waits until this number of its pushes count."""
        if trainer not in self._dead:
            self.pause(trainer, pushes)
            self._settles[trainer] = pushes

    def leave(self, trainer: int, pushes: int) -> None:
        """Note that a trainer has left after this number of pushes."""
        self.rest(trainer, pushes)
        self._left.add(trainer)

    def died(self, trainer: int) -> None:
        """Note that a trainer has died: none of its later pushes counts."""
        self._dead.add(trainer)
        self._left.add(trainer)
        self._active.discard(trainer)
        self._saves.pop(trainer, None)
        self._pulls.pop(trainer, None)
        self._settles.pop(trainer, None)
        self._paused.discard(trainer)

    def ahead(self, trainer: int) -> int:
        """Return the number of pushes that a trainer is ahead of the slowest one."""
        return self._clocks[trainer] - min((self._clocks[one] for one in self._active), default=self._clocks[trainer])

    def deeds(self) -> Iterator[ServerAction]:
        """Yield the actions that are due; each must be done before the next one is requested."""
        for trainer, pushes in self._resting.items():
            if min(self._had[trainer]) >= pushes:
                self._active.discard(trainer)
        if self._staleness >= 0:
            yield from self._begun()
        if len(self._left) == len(self._clocks) and not self._active:
            yield ServerAction(Do.END)

    def _begun(self) -> Iterator[ServerAction]:
        yield from self._steps()
        for trainer, pushes in sorted(self._pulls.items()):
            if self._applied[trainer] >= pushes and self.ahead(trainer) <= self._staleness:
                del self._pulls[trainer]
                yield ServerAction(Do.SEND, (trainer,))
        for trainer, pushes in sorted(self._settles.items()):
            if self._applied[trainer] >= pushes:
                del self._settles[trainer]
                yield ServerAction(Do.TELL, (trainer,))
        if self._saves:
            yield from self._save(min(self._saves.values()))

    def _save(self, checkpoint: int) -> Iterator[ServerAction]:
        if any(self._absent.get(one, -1) < checkpoint for one in self._active | self._paused):
            return
        waiting = sorted(one for one, number in self._saves.items() if number == checkpoint)
        for trainer in waiting:
            del self._saves[trainer]
            self._wake(trainer)
        yield ServerAction(Do.SAVE, tuple(waiting))

    def _steps(self) -> Iterator[ServerAction]:
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
            yield ServerAction(Do.STEP, tuple(ready))

    def _wake(self, trainer: int) -> None:
        self._resting.pop(trainer, None)
        self._paused.discard(trainer)
        if trainer not in self._active:
            # If all rest, without staleness: one that comes first must not be behind a later one, or each would wait.
            clocks = [self._clocks[one] for one in self._active or self._trains - self._left]
            slowest = min if self._active or self._staleness else max
            self._clocks[trainer] = max(self._clocks[trainer], slowest(clocks, default=0))
            self._active.add(trainer)
            self._trains.add(trainer)
