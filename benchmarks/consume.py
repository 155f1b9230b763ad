"""The training loop of all contenders in Python: it takes batches and discards them."""

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
        Each ``[32, n]`` float32. No more batches are requested than needed.
    producers : int
        Number of producers, each of which sends `cell.warm` samples before it waits.
    warmed : callable, optional
        If batches may repeat samples: whether all samples from before the clock started have arrived.
    fresh : callable, optional
        If batches may repeat samples: the number of new ones since the clock started.
    ahead : int
        If the gate holds nothing back: batches made before the clock starts, which do not count.
    """
    first, numbers, count = next(batches), [], 1
    time.sleep(_FILL_S)  # lets all buffers fill once
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
    """Take batches for `seconds`; return the last batch, their number, and the seconds they took."""
    count, start = 0, time.monotonic()
    while True:
        batch = next(batches)
        count += 1
        took = time.monotonic() - start
        if took >= seconds:
            return batch, count, took


def check_batch(batch: Any, samples: int = BATCH) -> None:
    """Raise BenchmarkError unless a batch, an array or torch.Tensor ``[samples, n]``, consists of whole samples."""
    if batch.shape[0] != samples or not bool((batch[:, 0] == batch[:, -1]).all()):
        raise BenchmarkError("A batch is not what was sent.")


class BatchRows:
    """Two buffers for batches, used in turn: each is reused for the next batch but one, so its pages stay mapped."""

    def __init__(self, elements: int, samples: int = BATCH) -> None:
        self._arrays = [np.zeros((samples, elements), np.float32) for _ in range(2)]
        self._next = 0

    def take(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the rows to fill, ``[samples, elements]``."""
        self._next = 1 - self._next
        return self._arrays[self._next]
