"""The queue of simulations and the state of each, in arrays, so that a million of them cost a few bytes each."""

from __future__ import annotations

from array import array

from mpidata.errors import MpidataError

__all__ = ["COMPLETE", "COUNTED", "FAILED", "NONE", "PENDING", "RUNNING", "Simulations"]

PENDING, RUNNING, COUNTED, COMPLETE, FAILED = range(5)
_STATES = ("pending", "running", "counted", "complete", "failed")

NONE = -1
"""In place of a simulation: there is none."""


class Simulations:
    """Which simulations wait, which group runs which, and what the trainers hold of them.

    A simulation is *pending* until a group takes it, *running* until the group closes it, *counted* from then (the
    number of its steps is known) until every trainer holds its share, then *complete*. One that its group gave up is
    *failed*. A simulation is *settled* when every trainer has said that it holds its share, failed ones included.

    Nothing here knows what a simulation is but its id, so the same queue serves any task that a group works off and
    whose samples the trainers count.

    Parameters
    ----------
    count : int
        Number of simulations; their ids are 0 to `count` - 1.
    groups, trainers : int
        Number of solver groups and of trainers.
    first : range, optional
        Ids to be taken before all others: the validation simulations. The order is otherwise that of the ids.

    Attributes
    ----------
    totals : list of int
        Number of simulations in each state, indexed by PENDING, RUNNING, COUNTED, COMPLETE, FAILED.
    settled : int
        Number of settled simulations.
    running : list of int
        The simulation each group runs, or NONE.

    Notes
    -----
    For one thread. Every method takes constant time.
    """

    def __init__(self, count: int, groups: int, trainers: int, first: range = range(0)) -> None:
        self.count = count
        self.totals = [count, 0, 0, 0, 0]
        self.settled = 0
        self.running = [NONE] * groups
        self._trainers = trainers
        self._first = first
        self._taken = 0
        self._state = bytearray(count)
        self._steps = array("q", bytes(8 * count))
        self._held = array("i", bytes(4 * count))

    @property
    def pending(self) -> int:
        """Number of simulations that no group has taken yet."""
        return self.totals[PENDING]

    @property
    def all_settled(self) -> bool:
        """Whether the trainers hold everything of every simulation."""
        return self.settled == self.count

    def state(self, simulation: int) -> int:
        """Return the state of a simulation: PENDING, RUNNING, COUNTED, COMPLETE or FAILED."""
        return self._state[simulation]

    def steps(self, simulation: int) -> int:
        """Return the steps a simulation has in all; 0 before its group has closed it."""
        return self._steps[simulation]

    def has_failed(self, simulation: int) -> bool:
        """Whether its group has given this simulation up."""
        return self._state[simulation] == FAILED

    def is_first(self, simulation: int) -> bool:
        """Whether a simulation is of those taken before all others."""
        return simulation in self._first

    def take(self, group: int) -> int:
        """Give a group the next pending simulation to run.

        Returns
        -------
        int
            Its id, or NONE when no simulation is pending.
        """
        taken = self._taken
        if taken == self.count:
            return NONE
        self._taken = taken + 1
        simulation = self._at(taken)
        self._state[simulation] = RUNNING
        self.totals[PENDING] -= 1
        self.totals[RUNNING] += 1
        self.running[group] = simulation
        return simulation

    def close(self, group: int, simulation: int, steps: int, failed: bool) -> None:
        """Record that a group has ended its simulation, or given it up, after so many steps.

        Raises
        ------
        MpidataError
            The group does not run this simulation, or the steps are negative.
        """
        self._check_runs(group, simulation)
        if steps < 0:
            raise MpidataError(f"Group {group} closed simulation {simulation} with {steps} steps. {_MIXED}")
        self.running[group] = NONE
        state = FAILED if failed else COUNTED
        self._state[simulation] = state
        self._steps[simulation] = steps
        self.totals[RUNNING] -= 1
        self.totals[state] += 1

    def check_idle(self, group: int) -> None:
        """Raise MpidataError if a group runs a simulation."""
        self._check_runs(group, NONE)

    def hold(self, trainer: int, simulation: int) -> bool:
        """Record that a trainer holds its share of a simulation.

        Returns
        -------
        bool
            True if this was the last trainer: the simulation is settled, and complete unless it has failed.

        Raises
        ------
        MpidataError
            No such simulation, its steps are not known yet, or all trainers hold it already.
        """
        if not 0 <= simulation < self.count:
            raise MpidataError(f"Trainer {trainer} holds simulation {simulation} of {self.count}. {_MIXED}")
        state = self._state[simulation]
        held = self._held[simulation] + 1
        if state < COUNTED or held > self._trainers:
            raise MpidataError(f"Trainer {trainer} holds simulation {simulation}, which is {_STATES[state]}. {_MIXED}")
        self._held[simulation] = held
        if held < self._trainers:
            return False
        if state == COUNTED:
            self._state[simulation] = COMPLETE
            self.totals[COUNTED] -= 1
            self.totals[COMPLETE] += 1
        self.settled += 1
        return True

    def _check_runs(self, group: int, simulation: int) -> None:
        runs = self.running[group]
        if runs != simulation:
            raise MpidataError(
                f"Group {group} closed {_name(simulation)}, but the scheduler gave it {_name(runs)}. {_MIXED}"
            )

    def _at(self, position: int) -> int:
        """Id of the simulation at this position of the order: `first`, then the rest by id."""
        first = self._first
        ahead = len(first)
        if position < ahead:
            return first[position]
        position -= ahead
        return position if not ahead or position < first.start else position + ahead


def _name(simulation: int) -> str:
    return "no simulation" if simulation == NONE else f"simulation {simulation}"


_MIXED = "The ranks do not agree on the job: start all of them with the same version of mpidata, or report this."
