"""Memory of padded batches: each sample has the longest one's extent."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mpidata.errors import StreamError
from mpidata.run.plan import Field, Plan
from mpidata.tensors import array_of
from mpidata.trainer.batches.fixed_shapes import Batch
from mpidata.trainer.batches.packed import PackedMemory

__all__ = ["PaddedMemory"]


class PaddedMemory(PackedMemory):
    """Makes the tensors of padded batches: [B, *shape] ([B, W, *shape]), with the longest extent in the batch.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    count : int
        Samples in a batch.
    pad : float
        The value after the values of float and complex fields; other fields have 0 or False there, index fields -1.
    gathers, pinned
        As in PackedMemory.

    Raises
    ------
    StreamError
        A field cannot hold `pad`.
    """

    shifted = False

    def __init__(
        self, plan: Plan, count: int, pad: float, *, gathers: Collection[str] | None = None, pinned: bool = False
    ) -> None:
        super().__init__(plan, count, gathers=gathers, pinned=pinned)
        self._elements = [_element(field, pad) for field in plan.fields]  # kept, because `fill` has their addresses
        self.fill = (ctypes.c_void_p * len(self._elements))(*(element.ctypes.data for element in self._elements))

    def take(self, numbers: npt.NDArray[np.int64]) -> Batch:
        """Return memory for a batch, as in PackedMemory, but without offsets."""
        batch = super().take(numbers)
        offsets = {f"{length.name}_offsets" for length in self._plan.lengths}
        return dataclasses.replace(batch, tensors={k: v for k, v in batch.tensors.items() if k not in offsets})

    def _extent(self, lengths: npt.NDArray[np.int64]) -> int:
        return int(lengths.max())

    def _shape(self, field: Field, extents: Mapping[str, int]) -> tuple[int, ...]:
        return (*self._steps, *field.extents(extents))


def _element(field: Field, pad: float) -> npt.NDArray[Any]:
    """Make the element after the values of a field, in the `numpy_dtype` of its dtype."""
    dtype: torch.dtype = getattr(torch, field.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        return np.array([-1 if field.index else 0], field.dtype)
    element = torch.tensor([pad], dtype=torch.float64, device="cpu").to(dtype)
    if field.length and math.isfinite(pad) and not element.isfinite().all():
        raise StreamError(
            f"pad={pad!r} is too large for field {field.name!r}, which is {field.dtype}. Give a smaller one."
        )
    return array_of(element)
