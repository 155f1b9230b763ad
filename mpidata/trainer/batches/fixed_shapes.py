"""Memory of batches of samples that all have the same shapes."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mpidata.dtypes import BFLOAT16, numpy_dtype
from mpidata.run.plan import Field
from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, lease, round_up

__all__ = ["Batch", "BatchMemory"]


@dataclasses.dataclass(frozen=True)
class Batch:
    """Memory of one batch, or of one sample.

    Attributes
    ----------
    tensors : dict of str to torch.Tensor
        One per field, `parameters` (float64), `time` (float64), `step` (int64), `simulation` (int64).
    addresses : list of int
        Address of each tensor, in the same order.
    pointers : ctypes array of void pointers
        Addresses of the fields, for the library; null for constants that are left out.
    memory : ndarray or torch.Tensor
        Lives as long as any of the tensors; if they are page-locked, as long as `simulation`.
    """

    tensors: dict[str, torch.Tensor]
    addresses: list[int]
    pointers: ctypes.Array[ctypes.c_void_p]
    memory: Any


class BatchMemory:
    """Makes the tensors of batches.

    Parameters
    ----------
    fields : sequence of Field
        As the job file declares them; constants are left out.
    n_parameters : int
        Number of parameters of a simulation.
    count : int or None
        Samples in a batch; None for single samples without the leading dimension.
    window : int
        Steps of a sample; 1 adds no dimension.
    pinned : bool
        Use page-locked memory from torch's own pool, which knows when a copy to the device has ended.

    Notes
    -----
    `take` may be called from several threads; memory may be returned in any thread.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        n_parameters: int,
        count: int | None = None,
        *,
        window: int = 1,
        pinned: bool = False,
    ) -> None:
        # As mpidata_page_layout in c_api/src/buffer/slots.h.
        lead = () if count is None else (count,)
        steps = lead if window == 1 else (*lead, window)
        # NumPy's dtype and the offset of each are computed once: small batches take some microseconds.
        self._layout: list[tuple[str, tuple[int, ...], str, np.dtype[Any], int]] = []
        size = 0
        for field in (field for field in fields if not field.per_simulation):
            size = self._add(field.name, steps + field.shape, field.dtype, size)
            size = round_up(size, ALIGNMENT)
        size = self._add("parameters", (*lead, n_parameters), "float64", size)
        for name, shape, dtype in (("time", steps, "float64"), ("step", steps, "int64"), ("simulation", lead, "int64")):
            size = self._add(name, shape, dtype, size)
        self._size = size
        self._bfloat16 = [name for name, _, dtype, *_ in self._layout if dtype == BFLOAT16]
        # The number of each field's tensor; None if it has none.
        numbers = iter(range(len(fields)))
        self._places = [None if field.per_simulation else next(numbers) for field in fields]
        self._leaves_out = None in self._places
        self._n_fields = len(fields)
        self._pinned = pinned
        self._pool = MemoryPool()

    def _add(self, name: str, shape: tuple[int, ...], dtype: str, at: int) -> int:
        in_numpy = numpy_dtype(dtype)
        self._layout.append((name, shape, dtype, in_numpy, at))
        return at + math.prod(shape) * in_numpy.itemsize

    @property
    def size(self) -> int:
        """Size of a block in bytes."""
        return self._size

    @property
    def pinned(self) -> bool:
        """Whether `take` gives page-locked memory."""
        return self._pinned

    @property
    def free(self) -> int:
        """Number of blocks that wait for reuse."""
        return self._pool.free

    def take(self) -> Batch:
        """Return memory that nothing else refers to, with undefined contents; it goes back by itself when unused."""
        memory: Any = None if self._pinned else self._pool.take(self._size)
        tensors = self._pinned_tensors() if self._pinned else self._tensors(memory)
        addresses = [tensor.data_ptr() for tensor in tensors.values()]
        places: Sequence[int | None] = addresses[: self._n_fields]
        if self._leaves_out:
            places = [None if number is None else addresses[number] for number in self._places]
        pointers = (ctypes.c_void_p * self._n_fields)(*places)
        return Batch(tensors, addresses, pointers, tensors["simulation"] if self._pinned else memory)

    def at(self, address: int, give_back: Callable[[], object]) -> dict[str, torch.Tensor]:
        """Return tensors over a block elsewhere; `give_back` is called, in any thread, when nothing refers to them."""
        return self._tensors(lease(address, self._size, give_back))

    def _tensors(self, memory: npt.NDArray[np.uint8]) -> dict[str, torch.Tensor]:
        tensors = {
            name: torch.from_numpy(np.ndarray(shape, in_numpy, memory, offset))
            for name, shape, _, in_numpy, offset in self._layout
        }
        for name in self._bfloat16:
            tensors[name] = tensors[name].view(torch.bfloat16)
        return tensors

    def _pinned_tensors(self) -> dict[str, torch.Tensor]:
        return {
            name: torch.empty(shape, dtype=getattr(torch, dtype), device="cpu", pin_memory=True)
            for name, shape, dtype, *_ in self._layout
        }
