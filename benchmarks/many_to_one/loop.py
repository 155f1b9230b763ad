"""The training loop of all ways: it takes batches from many producers and discards them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.consume import check_batch, take_for
from benchmarks.contender import BenchmarkError, Cell
from benchmarks.many_to_one.board import BATCH, Board

__all__ = ["consume"]

_FILL_S = 0.2


def consume(batches: Iterator[Any], cell: Cell, board: Board, producers: int) -> None:
    """Take batches for as long as the measurement lasts, and write the result.

    Parameters
    ----------
    batches : iterator of array or torch.Tensor
        Each ``[8, n]`` float32; the first and last value of a row are the sample's number.
    """
    first = next(batches)
    time.sleep(_FILL_S)  # lets all queues fill once
    numbers, batch = [], first
    for count in range(producers * cell.warm // BATCH):
        batch = batch if count == 0 else next(batches)
        check_batch(batch, BATCH)
        numbers.append(np.array(batch[:, 0]))
    if not np.array_equal(np.sort(np.concatenate(numbers)), np.arange(producers * cell.warm)):
        raise BenchmarkError("Samples have been lost or repeated.")
    del first, numbers
    held = board.held_s(producers)
    board.open()
    batch, count, seconds = take_for(batches, cell.seconds)
    held = board.held_s(producers) - held
    board.stop()
    check_batch(batch, BATCH)
    (cell.folder / "result.json").write_text(json.dumps({"samples": count * BATCH, "seconds": seconds}))
    (cell.folder / "held.json").write_text(json.dumps(held / seconds / producers))
