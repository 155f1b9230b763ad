"""The training loop of all ways: it takes batches from many producers and does nothing with them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contender import BenchmarkError, Cell
from benchmarks.many_to_one.board import BATCH, Board

__all__ = ["consume"]

_FILL_S = 0.2


def consume(batches: Iterator[Any], cell: Cell, board: Board, producers: int) -> None:
    """Take batches for as long as the measurement lasts, and write the result.

    Parameters
    ----------
    batches : iterator of array or torch.Tensor
        Each ``[8, n]`` float32; the first and the last number of a row are those of the sample.
    """
    first = next(batches)
    time.sleep(_FILL_S)  # all queues are full once
    numbers, batch = [], first
    for count in range(producers * cell.warm // BATCH):
        batch = batch if count == 0 else next(batches)
        _check(batch)
        numbers.append(np.array(batch[:, 0]))
    if not np.array_equal(np.sort(np.concatenate(numbers)), np.arange(producers * cell.warm)):
        raise BenchmarkError("Samples have been lost or repeated.")
    del first, numbers
    count, start, held = 0, time.monotonic(), board.held_s(producers)
    board.open()
    while True:
        batch = next(batches)
        count += 1
        now = time.monotonic()
        if now - start >= cell.seconds:
            break
    held = board.held_s(producers) - held
    board.stop()
    _check(batch)
    (cell.folder / "result.json").write_text(json.dumps({"samples": count * BATCH, "seconds": now - start}))
    (cell.folder / "held.json").write_text(json.dumps(held / (now - start) / producers))


def _check(batch: Any) -> None:
    if batch.shape[0] != BATCH or not bool((batch[:, 0] == batch[:, -1]).all()):
        raise BenchmarkError("A batch is not what was sent.")
