"""A mate that takes a batch late: the user is told, once, as the trainer and the solvers wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from mpidata.run import deadlines

__all__ = ["LateMates"]


class LateMates:
    """Knows for how long the first rank of a replica has waited for its mates.

    Parameters
    ----------
    say : callable
        Gets what to say.
    clock : callable, optional
        Gives seconds.
    """

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._since: float | None = None
        self._batch = 0

    def begin(self, batch: int) -> None:
        """Begin to wait for the mates to take a batch."""
        self._since, self._batch = self._clock(), batch

    def look(self) -> None:
        """Say it, if that lasts long."""
        if self._since is not None and self._clock() - self._since > deadlines.SILENT_S:
            self._since = None
            self._say(
                f"has waited for {deadlines.SILENT_S:g} s for its mates to take batch {self._batch}. Let all ranks "
                "of a replica iterate over the stream, and make the same calls of mpidata in the same order."
            )

    def end(self) -> None:
        """They have taken it."""
        self._since = None
