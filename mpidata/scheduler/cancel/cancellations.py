"""Simulations that the training scripts cancel: what happens to them, and which ranks are informed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpidata.run.plan import Plan
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.messages import Messages
from mpidata.scheduler.simulations import NONE, Simulations

__all__ = ["Cancelling"]


class Cancelling:
    """Cancels simulations that are no longer needed.

    The trainers are informed first: they accept and drop its further samples even if a buffer is full, so that a group
    that waits for room continues, and learns that its simulation is cancelled.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    messages : Messages
        Messages to the trainers and groups.
    output : RunOutput
        Receives the event `simulation_cancelled` for each.
    simulations : Simulations
        Their states.
    is_told : callable
        Whether a group is alive and has received the simulation that it is to run.

    Notes
    -----
    Not thread-safe.
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
        self._asked: dict[int, set[int]] = {}  # by simulation, if all trainers must ask
        self._ending: dict[int, int] = {}  # simulations that their groups are to end: their groups

    def ask(self, trainer: int, simulations: Iterable[int]) -> None:
        """Process a trainer's request to cancel simulations.

        In a replay it means that the trainer has had all samples that it had in the run, so all trainers must send it.
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
        """Report simulations that have become cancelled. To be called often."""
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
