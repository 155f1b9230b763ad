"""The state of each simulation, in arrays, so that each of a million simulations takes only a few bytes."""

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
    number of its steps is known) until every trainer holds its share, then *complete*. One that its own code abandoned
    has *failed*. One whose try has failed, or whose group was lost before the trainers held all of it, is pending again
    as long as it has tries left, and failed after the last one. A *cancelled* simulation never runs again; one that
    was running becomes cancelled when its group has closed it or is lost. A simulation is *settled* when no more
    samples of it will arrive.

    Parameters
    ----------
    count : int
        Number of simulations; their ids are 0 to `count` - 1.
    trainers : int
        Number of trainers.
    first : range, optional
        Ids to be taken before all others: the validation simulations.
    retries : int
        Number of further tries of a simulation that failed.

    Attributes
    ----------
    totals : list of int
        Number of simulations in each state, indexed by PENDING, RUNNING, COUNTED, COMPLETE, FAILED, CANCELLED.
    settled, first_settled : int
        Number of settled simulations, and of those among `first`.
    running : dict of int to int
        The simulation of each group that runs one.
    queue : Queue
        The simulations that wait.
    newly_cancelled, cancelled_before : list of int
        Those cancelled since the list was last emptied; those that were cancelled in an earlier start of the run.
    interrupted : bool
        Whether a trainer has died, left or joined, and not all know their steps yet: none is taken or completed.

    Notes
    -----
    Not thread-safe. All but `restore` and `cancelled` take constant time (`lose`: per simulation of the group).
    """

    def __init__(self, count: int, trainers: int, first: range = range(0), retries: int = 0) -> None:
        self.count = count
        self.totals = [count, 0, 0, 0, 0, 0]
        self.newly_cancelled: list[int] = []
        self.cancelled_before: list[int] = []
        self._to_cancel: set[int] = set()  # cancelled ones that still run
        self.settled = self.first_settled = 0
        self.running: dict[int, int] = {}
        self.interrupted = False
        self._living, self._retries = set(range(trainers)), retries
        self.queue = Queue(count, first)
        self._closed: dict[int, dict[int, None]] = {}  # by group: closed, in this order, and not settled yet
        self._state = bytearray(count)
        self._tries = array("i", bytes(4 * count))
        self._excused = array("i", bytes(4 * count))  # tries lost with a group that died in another simulation
        self._steps = array("q", bytes(8 * count))
        self._held: dict[int, set[int]] = {}  # of simulations that are not complete: the trainers that hold their share
        self._outdated: set[int] = set()  # simulations whose try began before the trainers changed
        self._closed_by = array("i", bytes(4 * count))
        self._restored: frozenset[int] = frozenset()

    @property
    def pending(self) -> int:
        """Number of simulations that no group runs or has run in full."""
        return self.totals[PENDING]

    @property
    def all_settled(self) -> bool:
        """Whether all simulations are settled."""
        return self.settled == self.count

    def state(self, simulation: int) -> int:
        """Return the state of a simulation: PENDING, RUNNING, COUNTED, COMPLETE, FAILED or CANCELLED."""
        return self._state[simulation]

    def steps(self, simulation: int) -> int:
        """Return a simulation's number of steps, as its last closed try reported; 0 before."""
        return self._steps[simulation]

    def tries(self, simulation: int) -> int:
        """Return how often a simulation was started."""
        return self._tries[simulation]

    def counted_tries(self, simulation: int) -> int:
        """Return the tries that count: those not lost with a group that died in another simulation."""
        return self._tries[simulation] - self._excused[simulation]

    def is_awaited(self, group: int) -> bool:
        """Whether the trainers lack samples of simulations that a group has closed."""
        return bool(self._closed.get(group))

    def has_failed(self, simulation: int) -> bool:
        """Whether a simulation was abandoned, or has failed on every try."""
        return self._state[simulation] == FAILED

    def is_cancelled(self, simulation: int) -> bool:
        """Whether a simulation is cancelled, or will be when its group closes it."""
        return self._state[simulation] == CANCELLED or simulation in self._to_cancel

    @property
    def cancelled(self) -> list[int]:
        """All simulations that are cancelled, or will be, in order."""
        cancelled = [found.start() for found in re.finditer(bytes([CANCELLED]), self._state)]
        return sorted([*cancelled, *self._to_cancel])

    def is_first(self, simulation: int) -> bool:
        """Whether a simulation is one of those taken before all others."""
        return self.queue.is_first(simulation)

    @property
    def ended(self) -> int:
        """Number of simulations that have run to their end, whether or not all trainers hold them yet."""
        return self.totals[COUNTED] + self.totals[COMPLETE]

    def restore(self, complete: _Counts, tries: _Counts, failed: Iterable[int], cancelled: Iterable[int] = ()) -> None:
        """Restore the state that an earlier start has left, before any simulation is taken.

        Parameters
        ----------
        complete : mapping of int to int
            Steps of each complete simulation.
        tries : mapping of int to int
            Tries that other simulations have used.
        failed, cancelled : iterable of int
            Simulations that were abandoned, or failed on every try; those that were cancelled.
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
        """Assign the next pending simulation to a group; returns its id, or NONE if none is pending."""
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
        """Cancel a simulation that is not for validation.

        Returns
        -------
        int or None
            The group that runs it; NONE if it does not run, so that it is cancelled now; None if it has ended, is
            already cancelled, or is one of `first`.
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
        """Note that a group has ended its simulation, or a try of it, after `steps` steps.

        Parameters
        ----------
        group, simulation, steps : int
            The group, the simulation that it ran, and its number of steps.
        failed : bool
            Whether the simulation was abandoned, or the try has failed.
        again : bool
            Whether a failed one may be retried.

        Returns
        -------
        bool
            Whether the trainers are now to expect these steps; False if it will be retried or is cancelled.

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
        """Take a simulation back from a group that never started it; its try does not count."""
        simulation = self.running.pop(group, NONE)
        if simulation != NONE:
            self._tries[simulation] -= 1
            (self._end_cancelled if simulation in self._to_cancel else self._retry)(simulation)
        return simulation

    def lose(self, group: int) -> tuple[int, list[int]]:
        """Note that a group is lost, with all its samples that the trainers do not hold.

        Returns
        -------
        int
            The simulation that it ran, else the last one it had closed: its try has failed, and it is pending again or
            failed. NONE if the trainers hold everything, or the simulation that it ran is cancelled.
        list of int
            Others it had closed before: pending again, and their tries do not count.
        """
        blamed = self.running.pop(group, NONE)
        if was_cancelled := blamed in self._to_cancel:
            self._end_cancelled(blamed)
            blamed = NONE
        closed = self._closed.pop(group, {})
        lost = [simulation for simulation in closed if self._state[simulation] == COUNTED]
        for simulation in set(closed).difference(lost):  # abandoned: no more samples will arrive
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
        """Note that a trainer holds its share of a simulation, as many steps as this try had.

        Returns
        -------
        bool
            True if this was the last trainer: the simulation is settled, and complete unless it failed.

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
            return False  # steps it lacked after one change may belong to another trainer after the next
        if state == COMPLETE:
            raise MpidataError(f"Trainer {trainer} holds simulation {simulation} a second time. {MIXED}")
        if by_try < tries or state == PENDING:
            return False  # for a try that was lost meanwhile
        self._held.setdefault(simulation, set()).add(trainer)
        return self._look(simulation)

    def lose_trainer(self, trainer: int) -> None:
        """Note that a trainer has died, or no longer trains, and that the others continue."""
        self._living.discard(trainer)

    def interrupt(self, outdated: bool = True) -> None:
        """Note that the assignment of steps to trainers changes: a call of `go_on` must follow.

        `outdated`: simulations that run now still send their steps by the previous assignment.
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
            Those that run again; their tries do not count.
        """
        self.interrupted, again = False, []
        for simulation in sorted(lacking):
            state, closed = self._state[simulation], self._closed.get(self._closed_by[simulation], {})
            if state == COMPLETE:
                self.settled -= 1
                self.first_settled -= self.is_first(simulation)
            elif closed.pop(simulation, 0) is None and state == FAILED:  # no more samples will arrive
                self._settle(simulation)
            if state in (COMPLETE, COUNTED):
                self._excuse(simulation)
                again.append(simulation)
        for simulation in list(self._held):
            self._look(simulation)
        return again

    def _look(self, simulation: int) -> bool:
        """Check whether all trainers hold a simulation now; returns as `hold`."""
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
        """Retry a simulation that is not at fault."""
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
        """Raise MpidataError if a group does not run this simulation or, with NONE, if it runs any."""
        runs = self.running.get(group, NONE)
        if runs != simulation:
            raise MpidataError(
                f"Group {group} closed {_name(simulation)}, but the scheduler gave it {_name(runs)}. {MIXED}"
            )


def _name(simulation: int) -> str:
    return "no simulation" if simulation == NONE else f"simulation {simulation}"
