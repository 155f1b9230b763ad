"""When a run that has failed is restarted automatically."""

from __future__ import annotations

from mpidata.launch.watching.outcome import Outcome

__all__ = ["Restarts"]

_EARLY = 3  # MPI cannot survive a death before all ranks have joined, and nothing is lost by starting again


class Restarts:
    """Counts the restarts of a run.

    Parameters
    ----------
    allowed : int
        Restarts of a run whose ranks had all joined.
    """

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._done = 0
        self._early = 0

    def why(self, outcome: Outcome) -> str | None:
        """Return the sentence that the run is restarted, or None if it is not.

        A run restarts only if a process died: a fault of a program would recur.

        Parameters
        ----------
        outcome : Outcome
            Of the last start.
        """
        if not outcome.died:
            return None
        if outcome.early and self._early < _EARLY:
            self._early += 1
            return f"That was before all ranks had joined. Starting again ({self._early} of {_EARLY})."
        if not outcome.early and self._done < self._allowed:
            self._done += 1
            return f"Starting again (restart {self._done} of {self._allowed})."
        return None
