"""Memory of batches whose samples have lengths of their own and are joined along them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from mpidata.dtypes import numpy_dtype
from mpidata.packing import number_tensors
from mpidata.run.plan import Field, Plan
from mpidata.tensors import tensor_of
from mpidata.trainer.batches.fixed_shapes import Batch
from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, round_up

__all__ = ["Entry", "PackedMemory", "make_tensors"]

# Name, shape and dtype of a tensor.
Entry: TypeAlias = "tuple[str, tuple[int, ...], str]"


class PackedMemory:
    """Makes the tensors of batches.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    count : int or None
        Samples in a batch; None for single samples without the leading dimension.
    gathers : collection of str, optional
        The constants that batches contain like other fields; the default is all.
    pinned : bool
        Use page-locked memory from torch's own pool, which knows when a copy to the device has ended.

    Attributes
    ----------
    shifted : bool
        Whether values of index fields count along the joined samples.
    fill : ctypes array of void pointers, or None
        In padded batches the element after the values of each field, for the library.
    """

    shifted = True
    fill: ctypes.Array[ctypes.c_void_p] | None = None

    def __init__(
        self, plan: Plan, count: int | None, *, gathers: Collection[str] | None = None, pinned: bool = False
    ) -> None:
        self._plan, self._pinned = plan, pinned
        self._fields = tuple(
            field for field in plan.fields if not field.per_simulation or gathers is None or field.name in gathers
        )
        self._lead = () if count is None else (count,)
        self._steps = self._lead if plan.samples_window == 1 else (*self._lead, plan.samples_window)
        self._pool = MemoryPool()

    @property
    def pinned(self) -> bool:
        """Whether `take` gives page-locked memory."""
        return self._pinned

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return an array for the numbers of a batch's samples, for all steps of each."""
        return np.empty((len(self._plan.numbers), *self._steps), np.int64)

    def take(self, numbers: npt.NDArray[np.int64]) -> Batch:
        """Return memory for a batch of samples with these numbers; its contents are undefined."""
        plan = self._plan
        extents = {length.name: self._extent(of) for length, of in zip(plan.lengths, numbers, strict=False)}
        entries: list[Entry] = [(field.name, self._shape(field, extents), field.dtype) for field in self._fields]
        entries.append(("parameters", (*self._lead, len(plan.parameters)), "float64"))
        entries += [
            ("time", self._steps, "float64"),
            ("step", self._steps, "int64"),
            ("simulation", self._lead, "int64"),
        ]
        tensors, memory = make_tensors(self._pool, entries, pinned=self._pinned)
        if memory is None:
            memory = tensors["simulation"]
        addresses = [tensor.data_ptr() for tensor in tensors.values()]
        at = dict(zip(tensors, addresses, strict=True))
        pointers = (ctypes.c_void_p * len(plan.fields))(*(at.get(field.name) for field in plan.fields))
        tensors |= number_tensors(plan.numbers, numbers, len(plan.lengths))
        return Batch(tensors, addresses, pointers, memory)

    def _extent(self, lengths: npt.NDArray[np.int64]) -> int:
        """Return the extent in a batch of a length whose values in the steps are `lengths`."""
        return int(lengths.sum())

    def _shape(self, field: Field, extents: Mapping[str, int]) -> tuple[int, ...]:
        return field.extents(extents) if field.length else (*self._steps, *field.extents())


def make_tensors(pool: MemoryPool, entries: Sequence[Entry], *, pinned: bool) -> tuple[dict[str, torch.Tensor], Any]:
    """Make tensors with undefined contents; also return the memory of the pool that they share, None if page-locked."""
    if pinned:
        tensors = {
            name: torch.empty(shape, dtype=getattr(torch, dtype), device="cpu", pin_memory=True)
            for name, shape, dtype in entries
        }
        return tensors, None
    offsets, size = [], 0
    for _, shape, dtype in entries:
        offsets.append(size)
        # Empty tensors also need their own place: torch.save refuses tensors of two dtypes in one.
        size = round_up(size + max(1, math.prod(shape) * numpy_dtype(dtype).itemsize), ALIGNMENT)
    memory = pool.take(size, room=size // 4)
    tensors = {
        name: tensor_of(np.ndarray(shape, numpy_dtype(dtype), memory, offset), dtype)
        for (name, shape, dtype), offset in zip(entries, offsets, strict=True)
    }
    return tensors, memory
