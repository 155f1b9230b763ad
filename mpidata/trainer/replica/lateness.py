"""A mate that takes a batch late: reported once, because the trainer and the solvers wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from mpidata.run import deadlines

__all__ = ["LateMates"]


class LateMates:
    """Measures how long the first rank of a replica waits for its mates.

    Parameters
    ----------
    say : callable
        Called with the message.
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._since: float | None = None
        self._batch = 0

    def begin(self, batch: int) -> None:
        """Start to wait for the mates to take a batch."""
        self._since, self._batch = self._clock(), batch

    def look(self) -> None:
        """Report the wait, if it is long."""
        if self._since is not None and self._clock() - self._since > deadlines.SILENT_S:
            self._since = None
            self._say(
                f"has waited for {deadlines.SILENT_S:g} s for its mates to take batch {self._batch}. Let all ranks "
                "of a replica iterate over the stream, and make the same calls of mpidata in the same order."
            )

    def end(self) -> None:
        """Note that the mates have taken the batch."""
        self._since = None
