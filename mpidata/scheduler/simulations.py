"""The state of each simulation, in arrays, so that a million of them cost a few bytes each."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping

from mpidata.errors import MpidataError
from mpidata.sampling.queue import NONE, Queue
from mpidata.scheduler.messages import MIXED

__all__ = ["CANCELLED", "COMPLETE", "COUNTED", "FAILED", "NONE", "PENDING", "RUNNING", "Simulations"]

PENDING, RUNNING, COUNTED, COMPLETE, FAILED, CANCELLED = range(6)
_Counts = Mapping[int, int]


class Simulations:
    """Which simulations wait, which group runs which, and what the trainers hold of them.

    A simulation is *pending* until a group takes it, *running* until the group closes it, *counted* from then (the
    number of its steps is known) until every trainer holds its share, then *complete*. One that its own code gave up
    has *failed*. One whose try has failed, or whose group was lost before the trainers held all of it, is pending again
    as long as it has tries left, and failed after the last one. One that is *cancelled* never runs again; if it was
    running, it is so once its group has closed it or is lost. A simulation is *settled* when nothing more is to come
    of it.

    Parameters
    ----------
    count : int
        Number of simulations; their ids are 0 to `count` - 1.
    trainers : int
        Number of trainers.
    first : range, optional
        Ids to be taken before all others: the validation simulations.
    retries : int
        Further tries of a simulation that failed.

    Attributes
    ----------
    totals : list of int
        Number of simulations in each state, indexed by PENDING, RUNNING, COUNTED, COMPLETE, FAILED, CANCELLED.
    settled, first_settled : int
        Number of settled simulations, and of those among `first`.
    running : dict of int to int
        The simulation of each group that runs one.
    queue : Queue
        Those that wait.
    newly_cancelled, cancelled_before : list of int
        Those that are cancelled since they were taken from there; those that an earlier start of the run has left so.
    interrupted : bool
        Whether a trainer has died, left or joined, and not all know their steps yet: nothing is taken, or complete.

    Notes
    -----
    For one thread. All but `restore` and `cancelled` take constant time (`lose`: per simulation of the group).
    """

    def __init__(self, count: int, trainers: int, first: range = range(0), retries: int = 0) -> None:
        self.count = count
        self.totals = [count, 0, 0, 0, 0, 0]
        self.newly_cancelled: list[int] = []
        self.cancelled_before: list[int] = []
        self._to_cancel: set[int] = set()  # which run
        self.settled = self.first_settled = 0
        self.running: dict[int, int] = {}
        self.interrupted = False
        self._living, self._retries = set(range(trainers)), retries
        self.queue = Queue(count, first)
        self._closed: dict[int, dict[int, None]] = {}  # by group: closed, in this order, and not settled yet
        self._state = bytearray(count)
        self._tries = array("i", bytes(4 * count))
        self._excused = array("i", bytes(4 * count))  # of these: lost with a group that died in another simulation
        self._steps = array("q", bytes(8 * count))
        self._held: dict[int, set[int]] = {}  # of those that are not complete: the trainers that hold their share
        self._outdated: set[int] = set()  # whose try began before the trainers changed
        self._closed_by = array("i", bytes(4 * count))
        self._restored: frozenset[int] = frozenset()

    @property
    def pending(self) -> int:
        """Number of simulations that no group runs or has run in full."""
        return self.totals[PENDING]

    @property
    def all_settled(self) -> bool:
        """Whether nothing more is to come of any simulation."""
        return self.settled == self.count

    def state(self, simulation: int) -> int:
        """Return the state of a simulation: PENDING, RUNNING, COUNTED, COMPLETE, FAILED or CANCELLED."""
        return self._state[simulation]

    def steps(self, simulation: int) -> int:
        """Return the steps a simulation has in all, as its last try to be closed said; 0 before."""
        return self._steps[simulation]

    def tries(self, simulation: int) -> int:
        """Return how often a simulation was begun."""
        return self._tries[simulation]

    def counted_tries(self, simulation: int) -> int:
        """Return how many of these count, as it was not another simulation in which its group died."""
        return self._tries[simulation] - self._excused[simulation]

    def is_awaited(self, group: int) -> bool:
        """Whether the trainers lack something of the simulations that a group has closed."""
        return bool(self._closed.get(group))

    def has_failed(self, simulation: int) -> bool:
        """Whether a simulation has been given up, or has failed on every try."""
        return self._state[simulation] == FAILED

    def is_cancelled(self, simulation: int) -> bool:
        """Whether a simulation is cancelled, or will be when its group closes it."""
        return self._state[simulation] == CANCELLED or simulation in self._to_cancel

    @property
    def cancelled(self) -> list[int]:
        """All that are cancelled, or will be, in order."""
        cancelled = [found.start() for found in re.finditer(bytes([CANCELLED]), self._state)]
        return sorted([*cancelled, *self._to_cancel])

    def is_first(self, simulation: int) -> bool:
        """Whether a simulation is of those taken before all others."""
        return self.queue.is_first(simulation)

    @property
    def ended(self) -> int:
        """How many have run to their end, whether or not all trainers hold them yet."""
        return self.totals[COUNTED] + self.totals[COMPLETE]

    def restore(self, complete: _Counts, tries: _Counts, failed: Iterable[int], cancelled: Iterable[int] = ()) -> None:
        """Begin with what an earlier run has left, before anything is taken.

        Parameters
        ----------
        complete : mapping of int to int
            Steps of each complete simulation.
        tries : mapping of int to int
            Tries that the others have used.
        failed, cancelled : iterable of int
            Simulations that were given up, or failed on every try; those that were cancelled.
        """
        for simulation, used in tries.items():
            self._tries[simulation] = used
        self._restored = frozenset(complete)
        for simulation, steps in complete.items():
            self._steps[simulation] = steps
            self._move(simulation, COMPLETE)
            self._settle(simulation)
        for simulation in failed:
            if self._state[simulation] == PENDING:
                self._move(simulation, FAILED)
                self._settle(simulation)
        for simulation in cancelled:
            if self._state[simulation] == PENDING:
                self._move(simulation, CANCELLED)
                self._settle(simulation)
                self.cancelled_before.append(simulation)

    def take(self, group: int) -> int:
        """Give a group the next pending simulation to run; returns its id, or NONE when none is pending."""
        if self.interrupted:
            return NONE
        simulation = self.queue.take(lambda simulation: self._state[simulation] == PENDING)
        if simulation != NONE:
            self._outdated.discard(simulation)
            self._move(simulation, RUNNING)
            self._tries[simulation] += 1
            self.running[group] = simulation
        return simulation

    def cancel(self, simulation: int) -> int | None:
        """Have a simulation that is trained on run no more.

        Returns
        -------
        int or None
            The group that runs it, NONE where none does, so that it is cancelled now; None where it has come to its
            end, is cancelled already, or is of `first`.
        """
        state = self._state[simulation]
        if state in (COMPLETE, FAILED) or self.is_first(simulation) or self.is_cancelled(simulation):
            return None
        if state == RUNNING:
            self._to_cancel.add(simulation)
            return next(group for group, runs in self.running.items() if runs == simulation)
        self._closed.get(self._closed_by[simulation], {}).pop(simulation, None)
        self._end_cancelled(simulation)
        return NONE

    def close(self, group: int, simulation: int, steps: int, failed: bool, again: bool = False) -> bool:
        """Note that a group has ended its simulation, or its try of it, after so many steps.

        Parameters
        ----------
        group, simulation, steps : int
            Which group, and what it has run.
        failed : bool
            Whether the simulation was given up, or the try has failed.
        again : bool
            Whether one that has failed may be tried again.

        Returns
        -------
        bool
            Whether the trainers are now to expect these steps; False for one that will be tried again, or is cancelled.

        Raises
        ------
        MpidataError
            The group does not run this simulation, or the steps are negative.
        """
        self.check_runs(group, simulation)
        if steps < 0:
            raise MpidataError(f"Group {group} closed simulation {simulation} with {steps} steps. {MIXED}")
        del self.running[group]
        self._steps[simulation] = steps
        self._held.pop(simulation, None)
        if simulation in self._to_cancel:
            self._end_cancelled(simulation)
            return False
        if simulation in self._outdated and not failed:
            self._excuse(simulation)
            return False
        if failed and again and self._may_retry(simulation):
            self._retry(simulation)
            return False
        self._move(simulation, FAILED if failed else COUNTED)
        self._closed.setdefault(group, {})[simulation] = None
        self._closed_by[simulation] = group
        return True

    def give_back(self, group: int) -> int:
        """Take a simulation back from a group that never began it; its try does not count."""
        simulation = self.running.pop(group, NONE)
        if simulation != NONE:
            self._tries[simulation] -= 1
            (self._end_cancelled if simulation in self._to_cancel else self._retry)(simulation)
        return simulation

    def lose(self, group: int) -> tuple[int, list[int]]:
        """Note that a group is lost, with all that the trainers do not hold of it.

        Returns
        -------
        int
            The simulation that it ran, else the last one it had closed: its try has failed, and it is pending again or
            failed. NONE where the trainers hold all, or what it ran is cancelled.
        list of int
            Others it had closed before: pending again, and their tries do not count.
        """
        blamed = self.running.pop(group, NONE)
        if was_cancelled := blamed in self._to_cancel:
            self._end_cancelled(blamed)
            blamed = NONE
        closed = self._closed.pop(group, {})
        lost = [simulation for simulation in closed if self._state[simulation] == COUNTED]
        for simulation in set(closed).difference(lost):  # given up: what the trainers have of it is all there is
            self._settle(simulation)
        if blamed == NONE and lost and not was_cancelled:
            blamed = lost.pop()
        for simulation in lost:
            self._excuse(simulation)
        if blamed != NONE and self._may_retry(blamed):
            self._retry(blamed)
        elif blamed != NONE:
            self._move(blamed, FAILED)
            self._settle(blamed)
        return blamed, lost

    def hold(self, trainer: int, simulation: int, by_try: int) -> bool:
        """Note that a trainer holds its share of a simulation, as large as a try of it has said.

        Returns
        -------
        bool
            True if this was the last trainer: the simulation is settled, and complete unless it has failed.

        Raises
        ------
        MpidataError
            No such simulation, no such try of it, or all trainers hold it already.
        """
        if not 0 <= simulation < self.count:
            raise MpidataError(f"Trainer {trainer} holds simulation {simulation} of {self.count}. {MIXED}")
        state, tries = self._state[simulation], self._tries[simulation]
        if state == CANCELLED:
            return False
        earlier = by_try == 0 and simulation in self._restored  # the trainers know its steps from an earlier start
        if not earlier and (not 1 <= by_try <= tries or (by_try == tries and state == RUNNING)):
            raise MpidataError(
                f"Trainer {trainer} holds all of try {by_try} of simulation {simulation}, which has not ended. {MIXED}"
            )
        if trainer not in self._living or (state == COMPLETE and self.interrupted):
            return False  # what it lacked after one change may be another one's after the next
        if state == COMPLETE:
            raise MpidataError(f"Trainer {trainer} holds simulation {simulation} a second time. {MIXED}")
        if by_try < tries or state == PENDING:
            return False  # of a try that was lost meanwhile
        self._held.setdefault(simulation, set()).add(trainer)
        return self._look(simulation)

    def lose_trainer(self, trainer: int) -> None:
        """Note that a trainer has died, or trains no more, and that the others go on."""
        self._living.discard(trainer)

    def interrupt(self, outdated: bool = True) -> None:
        """Note that other trainers have steps from now on: `go_on` is to follow.

        `outdated`: what is running now sends its steps to those that had them.
        """
        if outdated:
            self._outdated.update(self.running.values())
        self.interrupted = True

    def go_on(self, lacking: Iterable[int]) -> list[int]:
        """Note that all trainers know which steps are theirs now.

        Parameters
        ----------
        lacking : iterable of int
            Simulations of which some trainer lacks steps now.

        Returns
        -------
        list of int
            Those of them that run again; their tries do not count.
        """
        self.interrupted, again = False, []
        for simulation in sorted(lacking):
            state, closed = self._state[simulation], self._closed.get(self._closed_by[simulation], {})
            if state == COMPLETE:
                self.settled -= 1
                self.first_settled -= self.is_first(simulation)
            elif closed.pop(simulation, 0) is None and state == FAILED:  # what the trainers have of it is all there is
                self._settle(simulation)
            if state in (COMPLETE, COUNTED):
                self._excuse(simulation)
                again.append(simulation)
        for simulation in list(self._held):
            self._look(simulation)
        return again

    def _look(self, simulation: int) -> bool:
        """Look whether the trainers hold a simulation now; as `hold`."""
        if self.interrupted or not self._living <= self._held[simulation]:
            return False
        del self._held[simulation]
        if self._state[simulation] == COUNTED:
            self._move(simulation, COMPLETE)
        group = self._closed_by[simulation]
        if simulation not in self._closed.get(group, ()):
            return False
        self._closed[group].pop(simulation)
        self._settle(simulation)
        return True

    def _end_cancelled(self, simulation: int) -> None:
        self._to_cancel.discard(simulation)
        self._held.pop(simulation, None)
        self._move(simulation, CANCELLED)
        self._settle(simulation)
        self.newly_cancelled.append(simulation)

    def _may_retry(self, simulation: int) -> bool:
        return self.counted_tries(simulation) <= self._retries

    def _excuse(self, simulation: int) -> None:
        """Try again what is not at fault."""
        self._excused[simulation] += self._tries[simulation] > self._excused[simulation]
        self._retry(simulation)

    def _retry(self, simulation: int) -> None:
        self._held.pop(simulation, None)
        self._move(simulation, PENDING)
        self.queue.again(simulation)

    def _move(self, simulation: int, state: int) -> None:
        self.totals[self._state[simulation]] -= 1
        self.totals[state] += 1
        self._state[simulation] = state

    def _settle(self, simulation: int) -> None:
        self.settled += 1
        self.first_settled += self.is_first(simulation)

    def check_runs(self, group: int, simulation: int) -> None:
        """Raise MpidataError if a group does not run this simulation, or, with NONE, if it runs one."""
        runs = self.running.get(group, NONE)
        if runs != simulation:
            raise MpidataError(
                f"Group {group} closed {_name(simulation)}, but the scheduler gave it {_name(runs)}. {MIXED}"
            )


def _name(simulation: int) -> str:
    return "no simulation" if simulation == NONE else f"simulation {simulation}"
