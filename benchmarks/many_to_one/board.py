"""What producers and the training loop exchange in shared memory, whichever way the samples take."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.consume import stamp
from benchmarks.contender import Cell
from benchmarks.gate import Gate

__all__ = ["BATCH", "COMPUTE_S", "MOST_PRODUCERS", "Board", "plan", "produce"]

BATCH = 8
COMPUTE_S = 0.02  # per producer and sample
MOST_PRODUCERS = 64
# First words of the arrays with one word per producer; the same in programs/producers.c.
_HELD, _BEGAN, _MADE, _TAKEN, _LEFT = range(64, 64 + 5 * MOST_PRODUCERS, MOST_PRODUCERS)


def plan(folder: Path, sample_bytes: int, producers: int, seconds: float) -> Cell:
    """Return a measurement with queues of 64 MiB in all, but at least two batches in all and two samples per producer.

    All batch memory is also used before the clock starts: the first touch takes as long as 1 s of samples.
    """
    most = max(2 * BATCH, (64 << 20) // sample_bytes)
    queue = max(2, most // producers)
    return Cell(folder, sample_bytes, seconds, queue + 4 * BATCH // producers, queue)


class Board(Gate):
    """The gate, with some words per producer.

    It counts how long producers are held up, so that a put that has not ended also counts.
    """

    def begin_put(self, producer: int) -> None:
        """Note the start of a put."""
        self._words[_BEGAN + producer] = time.monotonic_ns()

    def end_put(self, producer: int) -> None:
        """Note the end of a put."""
        began = self._words[_BEGAN + producer]
        self._words[_BEGAN + producer] = 0
        self._words[_HELD + producer] += time.monotonic_ns() - began

    def held_s(self, producers: int) -> float:
        """Return the time that all producers have spent in puts until now, in seconds."""
        now, held = time.monotonic_ns(), 0
        for producer in range(producers):
            began = self._words[_BEGAN + producer]
            held += self._words[_HELD + producer] + (now - began if began else 0)
        return 1e-9 * held

    # For transports that do not report what has arrived or how much is in transit.

    def has_room(self, producer: int, queue: int) -> bool:
        """Return whether fewer than `queue` of the producer's samples are in transit."""
        return self._words[_MADE + producer] - self._words[_TAKEN + producer] < queue

    def wait_for_room(self, producer: int, queue: int) -> None:
        """Sleep until there is room or the producer must end."""
        self.wait_until(lambda: self.has_room(producer, queue) or self.stopped)

    def put_one(self, producer: int) -> None:
        """Count one sample as put."""
        self._words[_MADE + producer] += 1

    def take(self, producer: int, samples: int = 1) -> None:
        """Count samples as taken."""
        self._words[_TAKEN + producer] += samples

    def waiting(self, producer: int) -> range:
        """Return the numbers of the producer's samples that are put and not yet taken."""
        return range(self._words[_TAKEN + producer], self._words[_MADE + producer])

    def leave(self, producer: int) -> None:
        """Note that the producer puts nothing more."""
        self._words[_LEFT + producer] = 1

    def wait_until_all_left(self, producers: int) -> None:
        """Sleep until all producers have left."""
        self.wait_until(lambda: all(self._words[_LEFT + producer] for producer in range(producers)))


def produce(cell: Cell, board: Board, producer: int, producers: int, put: Callable[[int, Any], None]) -> None:
    """Run a producer: compute, then put a sample, until the end. Computing is a sleep, which needs no core.

    Parameters
    ----------
    put : callable
        Called with the sample's number among this producer's, from 0, and its float32 array.
    """
    values = np.ones(cell.elements, np.float32)
    for number in board.steps(cell.warm):
        if number >= cell.warm:
            time.sleep(COMPUTE_S)
        stamp(values, number * producers + producer)
        board.begin_put(producer)
        put(number, values)
        board.end_put(producer)
    board.leave(producer)
