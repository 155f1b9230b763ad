"""Successive batches on a trainer, while their rows arrive from the loaders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mpidata.errors import StreamError
from mpidata.loading.blocks import Block
from mpidata.loading.columns import Spec
from mpidata.native.loading import load

__all__ = ["Segment", "Stretch"]


@dataclass(frozen=True, eq=False)
class Segment:
    """Ranges [first, end) of places of a block, whose rows are those of a stretch from `offset` on."""

    block: Block
    ranges: tuple[tuple[int, int], ...]
    offset: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(end - first for first, end in self.ranges)


class Stretch:
    """Successive batches of an epoch that are requested together, because many small answers would cost too much.

    Parameters
    ----------
    epoch, first : int
        Numbers of the epoch and of the first batch.
    rows : sequence of int
        Of each batch.

    Attributes
    ----------
    owed : set of int
        Numbers of the requests that are not answered yet.
    row_bytes : int
        Bytes of a row; 0 until one has arrived.
    """

    def __init__(self, epoch: int, first: int, rows: Sequence[int]) -> None:
        self.epoch, self.first, self.end = epoch, first, first + len(rows)
        self.owed: set[int] = set()
        self.row_bytes = 0
        self._starts = list(itertools.accumulate(rows, initial=0))
        self._came = 0
        self._spec: Spec | None = None
        self._tensors: dict[str, torch.Tensor] = {}
        self._filled: list[np.ndarray[Any, np.dtype[np.uint32]]] = []  # places

    @property
    def rows(self) -> int:
        """Number of rows of all batches."""
        return self._starts[-1]

    def has(self, epoch: int, number: int) -> bool:
        """Whether this batch is one of them."""
        return self.epoch == epoch and self.first <= number < self.end

    def receive(self, number: int, spec: Spec, rows: int, buffers: list[memoryview], segment: Segment) -> None:
        """Copy the rows of an answer to their places; raises StreamError if they do not fit.

        Parameters
        ----------
        number : int
            Of the request.
        spec : Spec
            The columns, in the same order at each call.
        rows : int
            Number of rows.
        buffers : list of memoryview
            One for each column, preceded by one with the places if the answer does not contain all requested rows.
        segment : Segment
            The request.
        """
        self.owed.discard(number)
        if not rows:
            return
        self._came += rows
        if rows == self.rows:  # one answer has all rows, in order
            self._spec = spec
            self._tensors = dict(zip((name for name, _, _ in spec), _views(spec, rows, buffers), strict=True))
            self.row_bytes = sum(len(buffer) for buffer in buffers) // rows
            return
        if self._spec is None:
            self._make_room(spec)
        if rows == segment.rows:
            places = np.arange(rows, dtype=np.uint32)
        else:
            places = np.frombuffer(buffers.pop(0), np.uint32).copy()
        places += np.uint32(segment.offset)
        self.row_bytes = sum(len(buffer) for buffer in buffers) // rows
        self._put(places, rows, buffers)

    def batch(self, number: int, left_out: bool) -> dict[str, torch.Tensor]:
        """Return the tensors of a batch; raises StreamError if rows are missing, except those of omitted parts."""
        here = slice(*self._starts[number - self.first : number - self.first + 2])
        if self._came == self.rows:
            return {name: tensor[here] for name, tensor in self._tensors.items()}
        of = f"batch {number} of epoch {self.epoch}"
        filled = np.zeros(self.rows, bool)
        for places in self._filled:
            filled[places] = True
        filled = filled[here]
        if not left_out:
            raise StreamError(f"FileDataset: {of} has {filled.sum()} of {len(filled)} rows: a fault of mpidata.")
        if not filled.any():
            raise StreamError(
                f"FileDataset: nothing remains of {of}, because parts at which loaders die are omitted. Remove the "
                'part that the run\'s events name, or use shuffle="rows", which spreads each part over all batches.'
            )
        return {name: tensor[here][torch.from_numpy(filled)] for name, tensor in self._tensors.items()}

    def _make_room(self, spec: Spec) -> None:
        self._spec = spec
        self._tensors = {name: torch.from_numpy(np.empty((self.rows, *shape), dtype)) for name, dtype, shape in spec}

    def _put(self, places: np.ndarray[Any, np.dtype[np.uint32]], rows: int, buffers: list[memoryview]) -> None:
        scatter = load().mpidata_scatter
        for tensor, buffer in zip(self._tensors.values(), buffers, strict=True):
            row_bytes = tensor[0].numel() * tensor.element_size()
            source = np.frombuffer(buffer, np.uint8)
            fits = len(places) == rows and source.size == rows * row_bytes
            if not fits or scatter(
                tensor.data_ptr(), self.rows, source.ctypes.data, row_bytes, places.ctypes.data, rows
            ):
                raise StreamError("FileDataset: a loader's answer does not fit its batch: a fault of mpidata.")
        self._filled.append(places)


def _views(spec: Spec, rows: int, buffers: list[memoryview]) -> list[torch.Tensor]:
    """Return tensors of received memory, without a copy."""
    return [
        torch.from_numpy(np.frombuffer(buffer, dtype).reshape(rows, *shape))
        for (_, dtype, shape), buffer in zip(spec, buffers, strict=True)
    ]
