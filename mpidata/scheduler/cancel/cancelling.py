"""Simulations that the training scripts cancel: what becomes of them, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpidata.run.plan import Plan
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.messages import Messages
from mpidata.scheduler.simulations import NONE, Simulations

__all__ = ["Cancelling"]


class Cancelling:
    """Takes simulations out that are no longer worth running.

    The trainers are told first: what still comes is dropped, and taken though a buffer is full, so that a group that
    waits for room goes on, and hears that its simulation is cancelled.

    Parameters
    ----------
    plan : Plan
        Of the job.
    messages : Messages
        To the trainers and groups.
    output : RunOutput
        Gets the event `simulation_cancelled` for each.
    simulations : Simulations
        Their states.
    is_told : callable
        Whether a group that runs a simulation has been told to, and lives.

    Notes
    -----
    For one thread.
    """

    def __init__(
        self,
        plan: Plan,
        messages: Messages,
        output: RunOutput,
        simulations: Simulations,
        is_told: Callable[[int], bool],
    ) -> None:
        self._messages, self._output, self._simulations = messages, output, simulations
        self._is_told = is_told
        self._trainers_needed = plan.trainers if plan.replay else 1
        self._asked: dict[int, set[int]] = {}  # by simulation, where all trainers must ask
        self._ending: dict[int, int] = {}  # simulations that their groups are to end, with these

    def ask(self, trainer: int, simulations: Iterable[int]) -> None:
        """Take in what a trainer asks for.

        In a replay it says that it has had what the run had of a simulation, so all have to say so.
        """
        for simulation in simulations:
            if self._trainers_needed > 1:
                said = self._asked.setdefault(simulation, set())
                said.add(trainer)
                if len(said) < self._trainers_needed:
                    continue
            self._cancel(simulation)
        self.look()

    def look(self) -> None:
        """Tell of those that have become cancelled. To be called often."""
        while self._simulations.cancelled_before:
            self._messages.cancel(self._simulations.cancelled_before.pop(), NONE)
        newly, self._simulations.newly_cancelled = self._simulations.newly_cancelled, []
        for simulation in newly:
            if (group := self._ending.pop(simulation, NONE)) != NONE:
                self._messages.cancel(simulation, group, closed=True)
            self._output.cancelled(simulation, self._simulations.steps(simulation))

    def _cancel(self, simulation: int) -> None:
        group = self._simulations.cancel(simulation)
        if group is None:
            return
        if group == NONE or not self._is_told(group):
            self._messages.cancel(simulation, NONE)
            return
        self._ending[simulation] = group
        self._messages.cancel(simulation, group)
        self._messages.cancel_group(group, simulation, self._simulations.tries(simulation))
