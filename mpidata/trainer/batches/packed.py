"""Memory of batches of samples with lengths of their own, which are joined along them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mpidata.dtypes import numpy_dtype
from mpidata.run.plan import Field, Plan
from mpidata.tensors import tensor_of
from mpidata.trainer.batches.alike import Batch
from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, round_up

__all__ = ["PackedMemory", "join_steps", "number_tensors"]


class PackedMemory:
    """Makes the tensors of batches.

    Parameters
    ----------
    plan : Plan
        Of the job.
    count : int or None
        Samples in a batch; None for single samples without the leading dimension.
    gathers : bool
        Whether batches have the constants, like the other fields.
    pinned : bool
        Page-locked memory, from torch's own pool, which knows when a copy to the device has ended.
    """

    def __init__(self, plan: Plan, count: int | None, *, gathers: bool = True, pinned: bool = False) -> None:
        self._plan, self._pinned = plan, pinned
        self._fields = plan.fields if gathers else plan.step_fields
        self._lead = () if count is None else (count,)
        self._steps = self._lead if plan.samples_window == 1 else (*self._lead, plan.samples_window)
        self._pool = MemoryPool()

    def numbers(self) -> npt.NDArray[np.int64]:
        """Make room for the numbers of a batch's samples: of each those of all steps."""
        return np.empty((len(self._plan.numbers), *self._steps), np.int64)

    def take(self, numbers: npt.NDArray[np.int64]) -> Batch:
        """Memory for a batch of samples with these numbers, with undefined contents; it comes back by itself."""
        plan = self._plan
        totals = {length.name: int(of.sum()) for length, of in zip(plan.lengths, numbers, strict=False)}
        entries: list[tuple[str, tuple[int, ...], str]] = [
            (field.name, field.extents(totals) if field.length else (*self._steps, *field.extents()), field.dtype)
            for field in self._fields
        ]
        entries.append(("parameters", (*self._lead, len(plan.parameters)), "float64"))
        entries += [
            ("time", self._steps, "float64"),
            ("step", self._steps, "int64"),
            ("simulation", self._lead, "int64"),
        ]
        tensors, memory = self._made(entries)
        addresses = [tensor.data_ptr() for tensor in tensors.values()]
        at = dict(zip(tensors, addresses, strict=True))
        pointers = (ctypes.c_void_p * len(plan.fields))(*(at.get(field.name) for field in plan.fields))
        return Batch(tensors | number_tensors(plan, numbers), addresses, pointers, memory)

    def _made(self, entries: Sequence[tuple[str, tuple[int, ...], str]]) -> tuple[dict[str, torch.Tensor], Any]:
        if self._pinned:
            tensors = {
                name: torch.empty(shape, dtype=getattr(torch, dtype), pin_memory=True) for name, shape, dtype in entries
            }
            return tensors, tensors["simulation"]
        offsets, size = [], 0
        for _, shape, dtype in entries:
            offsets.append(size)
            size = round_up(size + math.prod(shape) * numpy_dtype(dtype).itemsize, ALIGNMENT)
        memory = self._pool.take(size, room=size // 4)
        tensors = {
            name: tensor_of(np.ndarray(shape, numpy_dtype(dtype), memory, offset), dtype)
            for (name, shape, dtype), offset in zip(entries, offsets, strict=True)
        }
        return tensors, memory


def number_tensors(plan: Plan, numbers: npt.NDArray[np.int64]) -> dict[str, torch.Tensor]:
    """Make a batch's tensors `<length>`, [B] (or [B, W]) int64, and `<length>_offsets`, [B + 1] (or [B * W + 1]) int64.

    A single sample of one step has no offsets. Optional fields have `<field>_given`, bool, shaped as the lengths.
    """
    tensors: dict[str, Any] = {}
    for name, of in zip(plan.numbers[len(plan.lengths) :], numbers[len(plan.lengths) :], strict=True):
        tensors[name] = torch.from_numpy(np.asarray(of != 0))
    for length, of in zip(plan.lengths, numbers, strict=False):
        tensors[length.name] = torch.from_numpy(of) if of.ndim else torch.tensor(int(of))
        if of.ndim:
            offsets = np.zeros(of.size + 1, np.int64)
            np.cumsum(of, out=offsets[1:])
            tensors[f"{length.name}_offsets"] = torch.from_numpy(offsets)
    return tensors


def join_steps(
    plan: Plan, fields: Sequence[Field], steps: Sequence[Sequence[torch.Tensor]], numbers: npt.NDArray[np.int64]
) -> list[torch.Tensor]:
    """Join these fields of the steps of a window, given by step, as in a batch; numbers are [n_numbers, W] int64."""
    before = {length.name: np.cumsum(of) - of for length, of in zip(plan.lengths, numbers, strict=False)}
    joined = []
    for number, field in enumerate(fields):
        parts = [step[number] for step in steps]
        if field.index:
            parts = [part + int(by) for part, by in zip(parts, before[field.index], strict=True)]
        joined.append(torch.cat(parts, field.shape.index(field.length)) if field.length else torch.stack(parts))
    return joined
