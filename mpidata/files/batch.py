"""A batch on a trainer, while its rows come from the loaders."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mpidata.errors import StreamError
from mpidata.files.blocks import Block
from mpidata.files.columns import Spec
from mpidata.loader.transport import Parcel
from mpidata.native.loading import load

__all__ = ["Batch", "Segment"]


@dataclass(frozen=True, eq=False)
class Segment:
    """Places [first, end) of a block, which are those of a batch from `offset` on."""

    block: Block
    first: int
    end: int
    offset: int


@dataclass(eq=False)
class Batch:
    """A batch that was asked for.

    Attributes
    ----------
    epoch, number, rows : int
        Which, and how many rows it is to have.
    owed : set of int
        Numbers of the requests that are not answered yet.
    came : int
        Rows that have come.
    """

    epoch: int
    number: int
    rows: int
    owed: set[int] = field(default_factory=set)
    came: int = 0
    _spec: Spec | None = None
    _tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    _filled: Any = None

    def receive(self, parcel: Parcel, segment: Segment) -> None:
        """Put the rows of an answer to their places; raises StreamError where they do not fit."""
        self.owed.discard(parcel.number)
        spec, rows = pickle.loads(parcel.pickle)
        if not rows:
            return
        if self._spec is not None and spec != self._spec:
            raise StreamError(f"FileDataset: loaders read parts of different columns: {spec} and {self._spec}.")
        self.came += rows
        if rows == self.rows:  # one answer is all of it, in order
            self._spec = spec
            self._tensors = dict(zip((name for name, _, _ in spec), _views(spec, rows, parcel.buffers), strict=True))
            return
        if self._spec is None:
            self._make_room(spec)
        buffers = list(parcel.buffers)
        if rows == segment.end - segment.first:
            places = np.arange(rows, dtype=np.uint32)
        else:
            places = np.frombuffer(buffers.pop(0), np.uint32).copy()
        places += np.uint32(segment.offset)
        self._put(places, rows, buffers)

    def finish(self, left_out: bool) -> dict[str, torch.Tensor]:
        """Give the tensors; raises StreamError where rows lack but that of parts that are left out."""
        if self.came == self.rows:
            return self._tensors
        of = f"batch {self.number} of epoch {self.epoch}"
        if not left_out:
            raise StreamError(f"FileDataset: {of} has {self.came} of {self.rows} rows: a fault of mpidata.")
        if not self.came:
            raise StreamError(
                f"FileDataset: nothing remains of {of}, as parts are left out at which loaders die. Take the part away "
                'that the run\'s events name, or use shuffle="rows", which spreads each part over all batches.'
            )
        return {name: tensor[torch.from_numpy(self._filled)] for name, tensor in self._tensors.items()}

    def _make_room(self, spec: Spec) -> None:
        self._spec, self._filled = spec, np.zeros(self.rows, bool)
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
                raise StreamError("FileDataset: an answer of a loader does not fit its batch: a fault of mpidata.")
        self._filled[places] = True


def _views(spec: Spec, rows: int, buffers: list[memoryview]) -> list[torch.Tensor]:
    """Make tensors of memory that was received, without a copy."""
    return [
        torch.from_numpy(np.frombuffer(buffer, dtype).reshape(rows, *shape))
        for (_, dtype, shape), buffer in zip(spec, buffers, strict=True)
    ]
