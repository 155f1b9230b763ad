"""The gate between producer and consumer: a few numbers in shared memory that start and stop a measurement.

The producer sends `warm` samples, which fill every cache and pool, then waits. The consumer takes them all, starts the
clock and opens the gate. So nothing is in transit when the clock starts, and what is in transit when it stops does not
count. `gate.h` does the same in C.
"""

from __future__ import annotations

import itertools
import mmap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["Gate", "GateError"]

_SIZE = 4096
_GO, _STOP, _MADE, _TAKEN = 0, 1, 2, 3  # word 4 is for the ranks of one group in C
_NAME = "gate"
_PAUSE_S = 200e-6


class GateError(Exception):
    """The other side did not respond in time."""


class Gate:
    """The gate of one measurement.

    Parameters
    ----------
    folder : Path
        Folder of the measurement, in which `Gate.make` made the gate.
    limit_s : float
        Time limit for the other side.
    """

    def __init__(self, folder: Path, limit_s: float) -> None:
        with open(folder / _NAME, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), _SIZE)).cast("q")
        self._limit_s = limit_s

    @staticmethod
    def make(folder: Path) -> None:
        """Make a closed gate."""
        (folder / _NAME).write_bytes(bytes(_SIZE))

    def open(self) -> None:
        """Let the producer continue."""
        self._words[_GO] = 1

    def stop(self) -> None:
        """Ask the producer to end."""
        self._words[_STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether the producer must end."""
        return bool(self._words[_STOP])

    def wait(self) -> None:
        """Sleep until the gate is open or the producer must end."""
        self.wait_until(lambda: self._words[_GO] or self._words[_STOP])

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Sleep until the condition holds."""
        deadline = time.monotonic() + self._limit_s
        while not condition():
            if time.monotonic() > deadline:
                raise GateError(f"Nothing has happened for {self._limit_s:.0f} s.")
            time.sleep(_PAUSE_S)

    def steps(self, warm: int) -> Iterator[int]:
        """Yield the numbers of the samples to send: `warm` of them, then more while the gate is open."""
        words = self._words
        for number in itertools.count():
            if number == warm:
                self.wait()
            if words[_STOP]:
                return
            yield number

    # For transports that do not report what has arrived or how much is in transit.

    @property
    def made(self) -> int:
        """Samples handed over by the producer."""
        return self._words[_MADE]

    @made.setter
    def made(self, number: int) -> None:
        self._words[_MADE] = number

    @property
    def taken(self) -> int:
        """Samples taken by the consumer."""
        return self._words[_TAKEN]

    @taken.setter
    def taken(self, number: int) -> None:
        self._words[_TAKEN] = number
