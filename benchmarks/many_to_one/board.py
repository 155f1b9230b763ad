"""What producers and the training loop tell each other in shared memory, whichever way the samples take."""

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
COMPUTE_S = 0.02  # of a producer, for each sample
MOST_PRODUCERS = 64
# First words of those that each producer has for itself; the same in programs/producers.c.
_HELD, _BEGAN, _MADE, _TAKEN, _LEFT = range(64, 64 + 5 * MOST_PRODUCERS, MOST_PRODUCERS)


def plan(folder: Path, sample_bytes: int, producers: int, seconds: float) -> Cell:
    """A measurement with queues of 64 MiB in all, but of two batches in all and two samples a producer at least.

    Before the clock all memory for batches has been used, too: to touch it first takes as long as 1 s of samples.
    """
    most = max(2 * BATCH, (64 << 20) // sample_bytes)
    queue = max(2, most // producers)
    return Cell(folder, sample_bytes, seconds, queue + 4 * BATCH // producers, queue)


class Board(Gate):
    """The gate with some words for each producer.

    How long producers are held up is counted here, so that a put that has not ended counts, too.
    """

    def begin_put(self, producer: int) -> None:
        """A put begins."""
        self._words[_BEGAN + producer] = time.monotonic_ns()

    def end_put(self, producer: int) -> None:
        """It has ended."""
        began = self._words[_BEGAN + producer]
        self._words[_BEGAN + producer] = 0
        self._words[_HELD + producer] += time.monotonic_ns() - began

    def held_s(self, producers: int) -> float:
        """Time that all producers have been in puts until now, in seconds."""
        now, held = time.monotonic_ns(), 0
        for producer in range(producers):
            began = self._words[_BEGAN + producer]
            held += self._words[_HELD + producer] + (now - began if began else 0)
        return 1e-9 * held

    # For transports that do not say by themselves what is there, or how much is on its way.

    def has_room(self, producer: int, queue: int) -> bool:
        """Whether fewer than `queue` of the producer's samples are on their way."""
        return self._words[_MADE + producer] - self._words[_TAKEN + producer] < queue

    def wait_for_room(self, producer: int, queue: int) -> None:
        """Sleep until there is room, or the producer is to end."""
        self.wait_until(lambda: self.has_room(producer, queue) or self.stopped)

    def put_one(self, producer: int) -> None:
        """A sample is there."""
        self._words[_MADE + producer] += 1

    def take(self, producer: int, samples: int = 1) -> None:
        """Samples have been taken."""
        self._words[_TAKEN + producer] += samples

    def waiting(self, producer: int) -> range:
        """Numbers of the producer's samples that are there."""
        return range(self._words[_TAKEN + producer], self._words[_MADE + producer])

    def leave(self, producer: int) -> None:
        """The producer puts nothing more."""
        self._words[_LEFT + producer] = 1

    def wait_until_all_left(self, producers: int) -> None:
        """Sleep until no producer puts anything."""
        self.wait_until(lambda: all(self._words[_LEFT + producer] for producer in range(producers)))


def produce(cell: Cell, board: Board, producer: int, producers: int, put: Callable[[int, Any], None]) -> None:
    """Be a producer: compute, then put a sample, until the end. Here computing is a sleep, which needs no core.

    Parameters
    ----------
    put : callable
        Gets the number of the sample among this producer's, from 0, and its float32 array.
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
