"""What happens to the steps of trainers that die, leave or join: others adopt them; simulations they lack run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpidata.scheduler.ending import Stream
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.messages import Messages
from mpidata.scheduler.simulations import Simulations

__all__ = ["Adoption"]


class Adoption:
    """Waits until all living trainers know which steps are theirs, after one has died, left or joined.

    Until then no simulation is dispatched: samples of one that ran before might arrive at a trainer that does not know
    yet on which of its steps another one had trained.

    Parameters
    ----------
    messages : Messages
        Messages to the trainers.
    simulations : Simulations
        Their states.
    output : RunOutput
        Receives the event `run_again` for each simulation that runs again.
    stream : Stream
        Reopened at each change.
    run_again : callable
        Called when simulations are to run again, or may be dispatched again.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(
        self,
        messages: Messages,
        simulations: Simulations,
        output: RunOutput,
        stream: Stream,
        run_again: Callable[[], object],
    ) -> None:
        self._stream, self._run_again = stream, run_again
        self._messages, self._simulations, self._output = messages, simulations, output
        self._changes = 0
        self._waits_for: set[int] = set()
        self._lacking: set[int] = set()

    def lost(self, trainer: int, others: Iterable[int], trained: bool = True) -> None:
        """Tell the others that a trainer has died, and wait for them; `trained`: it was not a waiting spare."""
        self._messages.lose_trainer(trainer)
        self._simulations.lose_trainer(trainer)
        self._changed(others, trained)

    def retired(self, trainer: int, others: Iterable[int]) -> None:
        """Tell the others that a trainer no longer trains, and wait for them."""
        self._messages.retire_trainer(trainer)
        self._simulations.lose_trainer(trainer)
        self._changed(others)

    def joined(self, trainer: int, all_trainers: Iterable[int]) -> None:
        """Tell all that a spare trains from now on, and wait for them."""
        self._messages.join_trainer(trainer)
        self._changed(all_trainers)

    def _changed(self, trainers: Iterable[int], trains: bool = True) -> None:
        self._stream.reopen()
        self._simulations.interrupt(outdated=trains)
        self._changes += 1
        self._waits_for = set(trainers)

    def lacks(self, simulation: int) -> None:
        """Note that a trainer lacks steps of a simulation."""
        self._lacking.add(simulation)

    def adopted(self, trainer: int, changes: int) -> None:
        """Note that a trainer has carried out this many changes; after the last trainer the job continues."""
        if changes != self._changes or trainer not in self._waits_for:
            return
        self._waits_for.discard(trainer)
        if self._waits_for:
            return
        again = self._simulations.go_on(self._lacking)
        self._lacking.clear()
        for simulation in again:
            self._output.write("run_again", simulation=simulation)
        self._output.figures.run_again += len(again)
        self._run_again()
