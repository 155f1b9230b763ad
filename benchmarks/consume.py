"""The training loop of all contenders that are Python: it takes batches and does nothing with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.contender import BATCH, BenchmarkError, Cell
from benchmarks.gate import Gate

if TYPE_CHECKING:
    import torch

__all__ = ["BatchRows", "check_batch", "consume", "stamp", "take_for"]

_FILL_S = 0.2


def stamp(values: Any, number: int) -> None:
    """Mark a sample with its number, at both ends."""
    values[0] = values[-1] = number


def consume(
    batches: Iterator[torch.Tensor],
    cell: Cell,
    gate: Gate,
    producers: int = 1,
    warmed: Callable[[], bool] | None = None,
    fresh: Callable[[], int] | None = None,
    ahead: int = 0,
) -> None:
    """Take batches for as long as the measurement lasts, and write the result.

    Parameters
    ----------
    batches : iterator of torch.Tensor
        Each ``[32, n]`` float32. Asked for no more batches than are needed.
    producers : int
        That send `cell.warm` samples each before they wait.
    warmed : callable, optional
        Whether all samples from before the clock have been seen, where batches may repeat some.
    fresh : callable, optional
        Number of new samples since the clock began, where batches may repeat some.
    ahead : int
        Batches made before the clock begins, which do not count, where nothing is held back by the gate.
    """
    first, numbers, count = next(batches), [], 1
    time.sleep(_FILL_S)  # all buffers are full once
    batch = first
    while True:
        check_batch(batch)
        numbers.append(batch[:, 0].clone().numpy())
        if warmed() if warmed else count * BATCH >= producers * cell.warm:
            break
        batch = next(batches)
        count += 1
    if producers == 1 and not warmed and not np.array_equal(np.sort(np.concatenate(numbers)), np.arange(cell.warm)):
        raise BenchmarkError("Samples have been lost or repeated.")
    del first, numbers
    gate.open()
    batch, count, seconds = take_for(batches, cell.seconds)
    samples = int(fresh()) if fresh else max(0, count - ahead) * BATCH
    gate.stop()
    check_batch(batch)
    (cell.folder / "result.json").write_text(json.dumps({"samples": samples, "seconds": seconds}))


def take_for(batches: Iterator[Any], seconds: float) -> tuple[Any, int, float]:
    """Take batches for so many seconds; returns the last one, how many, and the seconds they took."""
    count, start = 0, time.monotonic()
    while True:
        batch = next(batches)
        count += 1
        took = time.monotonic() - start
        if took >= seconds:
            return batch, count, took


def check_batch(batch: Any, samples: int = BATCH) -> None:
    """Raise BenchmarkError if a batch, array or torch.Tensor ``[samples, n]``, is not of whole samples."""
    if batch.shape[0] != samples or not bool((batch[:, 0] == batch[:, -1]).all()):
        raise BenchmarkError("A batch is not what was sent.")


class BatchRows:
    """Memory for batches, used in turn as a batch is forgotten at the next but one: no page is touched first time."""

    def __init__(self, elements: int, samples: int = BATCH) -> None:
        self._arrays = [np.zeros((samples, elements), np.float32) for _ in range(2)]
        self._next = 0

    def take(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Rows to be filled, ``[samples, elements]``."""
        self._next = 1 - self._next
        return self._arrays[self._next]
