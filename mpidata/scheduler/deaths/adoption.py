"""What becomes of the steps of trainers that have died: the others take them over, and what they lack runs again."""

from __future__ import annotations

from collections.abc import Iterable

from mpidata.scheduler.figures.journal import Journal
from mpidata.scheduler.messages import Messages
from mpidata.scheduler.simulations import Simulations

__all__ = ["Adoption"]


class Adoption:
    """Waits until all trainers that live have taken over their part of a dead one's steps.

    Until then no simulation is given out: one that ran before might come to a trainer that does not know yet on which
    of its steps the dead one had trained.

    Parameters
    ----------
    messages : Messages
        To the trainers.
    simulations : Simulations
        Their states.
    journal : Journal
        Gets the event `run_again` for each simulation that runs again.

    Notes
    -----
    For one thread.
    """

    def __init__(self, messages: Messages, simulations: Simulations, journal: Journal) -> None:
        self._messages, self._simulations, self._journal = messages, simulations, journal
        self._deaths = 0
        self._waits_for: set[int] = set()
        self._lacking: set[int] = set()

    def lost(self, trainer: int, living: Iterable[int]) -> None:
        """Tell the others that a trainer has died, and wait for them."""
        self._messages.lose_trainer(trainer)
        self._simulations.lose_trainer(trainer)
        self._deaths += 1
        self._waits_for = set(living)

    def lacks(self, simulation: int) -> None:
        """Take in that a trainer lacks steps of a simulation."""
        self._lacking.add(simulation)

    def adopted(self, trainer: int, deaths: int) -> bool:
        """Take in that a trainer has taken over its part from so many; returns whether it is the last one."""
        if deaths != self._deaths or trainer not in self._waits_for:
            return False
        self._waits_for.discard(trainer)
        if self._waits_for:
            return False
        again = self._simulations.go_on(self._lacking)
        self._lacking.clear()
        for simulation in again:
            self._journal.write_numbers("run_again", simulation=simulation)
        self._journal.figures.run_again += len(again)
        return True
