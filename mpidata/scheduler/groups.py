"""The solver groups or loaders of a job: which exist, which wait, what replaces a lost one."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator

from mpidata.errors import MpidataError
from mpidata.run import deadlines
from mpidata.run.plan import Plan

__all__ = ["Groups", "Places"]

# Between attempts to spawn a group: doubled after each failure.
_FIRST_PAUSE_S = 0.5


@dataclasses.dataclass(frozen=True)
class Places:
    """How many groups there are to be: the plan's attributes about groups, under the same names."""

    groups: int
    groups_in_world: int
    start: str
    lifetime: str
    retries: int


class Groups:
    """Which groups there are and what they do.

    A group is *active* when it may be assigned simulations: at first, `plan.groups` groups are. Other groups that are
    alive are *spares*: they have joined, or will, and wait until one replaces an active group that is lost or has left.
    When there is no spare, a group is *spawned*, if that is possible; numbers of groups are never reused. Groups in
    excess after `scale` are *retired*: when they are done, those that were spawned leave, and the others, which cannot
    end before the world does, rest: they are spares.

    Parameters
    ----------
    plan : Plan or Places
        The job's plan, or that of its loaders, each of which is a group here.
    can_spawn : bool
        Whether groups can be started while the job runs.

    Attributes
    ----------
    starting : set of int
        Groups that are being spawned.
    lost : set of int
        Groups that were declared lost.
    given_up : int
        Places for which no group could be spawned on any try.
    any_joined : bool
        Whether a group has ever joined the job.
    hopeless : bool
        Whether no group is spawned any more, because none has joined for a long time.
    wanted : int
        How many groups are to be active.

    Notes
    -----
    Not thread-safe. Times are in seconds of a monotonic clock.
    """

    def __init__(self, plan: Plan | Places, can_spawn: bool) -> None:
        self.starting: set[int] = set()
        self.lost: set[int] = set()
        self.given_up = 0
        self.any_joined = plan.groups_in_world > 0
        self.hopeless = False
        self.wanted = plan.groups
        self._plan = plan
        self._can_spawn = can_spawn
        self._alive = set(range(plan.groups_in_world))
        self._active = set(range(min(plan.groups, plan.groups_in_world)))
        self._asking: deque[int] = deque()
        self._next = plan.groups_in_world
        self._untried: set[int] = set()
        self._failed_spawns = 0
        self._spawn_from = 0.0
        self._failing_since: float | None = None
        # Places for which a group may be spawned: in the split start only those of groups that were lost.
        self._vacant = plan.groups if plan.start == "spawn" else 0
        self._surplus = 0  # active groups that are to be retired
        self._retired: set[int] = set()

    @property
    def alive(self) -> list[int]:
        """Groups that have joined the job, or will with the world, and have neither left nor are lost."""
        return sorted(self._alive)

    def is_alive(self, group: int) -> bool:
        """Whether a group is one of `alive`; takes constant time."""
        return group in self._alive

    @property
    def any_left(self) -> bool:
        """Whether a group that can run simulations exists, or may still join."""
        return bool(self._alive or self.starting) or self.may_spawn

    def works(self, group: int) -> None:
        """Note that a group has asked for a simulation: a spawned program works."""
        if group in self._untried:
            self._untried.discard(group)
            self._failed_spawns = 0

    def ask(self, group: int) -> None:
        """Note that a group waits for its next simulation."""
        self._asking.append(group)

    def ready(self) -> Iterator[int]:
        """Take active groups that wait for a simulation, in the order in which they asked."""
        for _ in range(len(self._asking)):
            group = self._asking.popleft()
            if group in self._active:
                yield group
            else:
                self._asking.append(group)

    def release(self) -> list[int]:
        """Take all groups that wait for a simulation, including spares."""
        asking = list(self._asking)
        self._asking.clear()
        return asking

    @property
    def waiting(self) -> list[int]:
        """Groups that wait for a simulation, including spares, in the order in which they asked."""
        return list(self._asking)

    def scale(self, count: int, what: str, section: str) -> str:
        """Set how many groups are to be active; call `promote` and `retire` afterwards.

        Parameters
        ----------
        count : int
            At least 1.
        what, section : str
            What they are called in sentences, and their section of the job file.

        Returns
        -------
        str
            The consequences, for the user.

        Raises
        ------
        MpidataError
            There are not enough spares, and none can be spawned.
        """
        there = len(self._active) + len(self.starting)
        more = count - there
        spares = min(len(self._spares()), max(0, more))
        asked = f"{count} {what if count > 1 else what.removesuffix('s')}"
        if more > spares and not self._can_spawn:
            raise MpidataError(
                f"{asked} would be {more} more, but the job has {spares} to spare and cannot start others, which needs "
                f"fault tolerance (ULFM) and one host, or '{section}.start: spawn'. Start the job with more "
                f"'{section}.spares'."
            )
        self.wanted, self._vacant, self._surplus = count, max(0, more), max(0, -more)
        self.hopeless, self._failed_spawns, self._failing_since = False, 0, None
        told = [f"{spares} of the spare ones"] if spares else []
        told += [f"{more - spares} to be started"] if more > spares else []
        told += [f"{-more} to stop when done"] if more < 0 else []
        return f"{asked} from now on, there were {there}: {' and '.join(told) or 'nothing changes'}."

    def retire(self, candidates: Iterable[int]) -> list[int]:
        """Retire active groups among these, in this order, while there are too many; returns them.

        At least `wanted` stay active: groups that are still starting do not replace them yet.
        """
        if not (self._surplus or self._retired):
            return []
        most = min(self._surplus, max(0, len(self._active) - self.wanted))
        retired = [group for group in candidates if group in self._active][:most]
        self._surplus -= len(retired)
        self._retired.update(retired)
        self._active.difference_update(retired)
        for group in self._retired.intersection(self._asking):
            self._asking.remove(group)
        return retired

    def rest(self, group: int) -> bool:
        """Let a retired group wait as a spare if it belongs to the world; returns whether it does."""
        if group not in self._retired or group >= self._plan.groups_in_world:
            return False
        self._retired.discard(group)
        self._asking.append(group)
        return True

    def leave(self, group: int) -> None:
        """Note that a group has left in order."""
        if group in self._active and (self._plan.start == "spawn" or self._surplus):
            self._vacate(group)
        self._remove(group)

    def lose(self, group: int) -> None:
        """Note that a group is lost."""
        if group in self._active:
            self._vacate(group)
        self._remove(group)
        self.lost.add(group)

    def promote(self) -> list[int]:
        """Replace active groups that are gone by spares; returns these."""
        free = self.wanted - len(self._active) - len(self.starting)
        promoted = self._spares()[: max(0, free)]
        self._active.update(promoted)
        self._vacant = max(0, self._vacant - len(promoted))
        return promoted

    def to_spawn(self, pending: int, now: float) -> list[int]:
        """Return numbers of groups to spawn now for `pending` simulations; they count as starting from now on."""
        if not self.may_spawn or now < self._spawn_from:
            return []
        # A simulation for which a group is started is no longer pending; others are until a started group asks.
        on_their_way = len(self.starting) + len(self._untried) if self._plan.lifetime == "pool" else 0
        wanted = min(self._vacant, pending - on_their_way)
        if self._failed_spawns:
            wanted = min(wanted, 1 - len(self.starting))
        numbers = list(range(self._next, self._next + max(0, wanted)))
        self._next += len(numbers)
        self.starting.update(numbers)
        self._vacant -= len(numbers)
        return numbers

    def spawned(self, group: int) -> None:
        """Note that a spawned group has joined."""
        self.any_joined = True
        self._failing_since = None
        self.starting.discard(group)
        self._alive.add(group)
        self._active.add(group)
        self._untried.add(group)

    def spawn_failed(self, group: int, now: float) -> bool:
        """Note that a group could not be spawned; returns whether this will be retried.

        If no group joins any more, the other places are abandoned with the first one.
        """
        self.starting.discard(group)
        self._spawn_from = now + _FIRST_PAUSE_S * 2**self._failed_spawns
        self._failing_since = now if self._failing_since is None else self._failing_since
        again = self._fail()
        if not again and now - self._failing_since >= deadlines.SPAWN_HOPELESS_S:
            self.given_up += self._vacant
            self.hopeless = True
        return again

    def _spares(self) -> list[int]:
        """Return spares; those that already wait come first, as they can start at once."""
        asking = [group for group in self._asking if group not in self._active]
        return asking + sorted(self._alive.difference(self._active, self._retired, asking))

    @property
    def may_spawn(self) -> bool:
        """Whether a group may be spawned now or later."""
        return self._can_spawn and not self.hopeless and self._vacant > 0

    def _fail(self) -> bool:
        """Count a failed attempt to fill a place; returns whether there will be another one."""
        if self._surplus:
            self._surplus -= 1
            return False
        if self._failed_spawns < self._plan.retries:
            self._failed_spawns += 1
            self._vacant += 1
            return True
        self.given_up += 1
        self._failed_spawns = 0
        return False

    def _vacate(self, group: int) -> None:
        # A program that always ends before it asks for work must not be started forever. One that is started for a
        # single simulation uses up the tries of that simulation.
        if self._surplus:
            self._surplus -= 1
        elif group in self._untried and self._plan.lifetime == "pool":
            self._fail()
        else:
            self._vacant += 1

    def _remove(self, group: int) -> None:
        self._untried.discard(group)
        self._alive.discard(group)
        self._active.discard(group)
        self._retired.discard(group)
        if group in self._asking:
            self._asking.remove(group)
