"""Memory of batches: a pool whose blocks are used again, but only when no tensor the user holds refers to them."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mpidata.plan import Field

__all__ = ["Batch", "BatchMemory"]

_ALIGNMENT = 64
# Free blocks that are kept: as many as fit into this, but two of any size.
_KEEP_BYTES = 64 << 20


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
        Those of the fields, for the library.
    """

    tensors: dict[str, torch.Tensor]
    addresses: list[int]
    pointers: ctypes.Array[ctypes.c_void_p]


class _Lease:
    """Owner of a block while tensors refer to it: all arrays made from it, and their tensors, keep it alive."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


class BatchMemory:
    """Makes the tensors of batches.

    Parameters
    ----------
    fields : sequence of Field
        As the job file declares them.
    n_parameters : int
        Number of parameters of a simulation.
    count : int or None
        Samples in a batch; None for single samples without the leading dimension.
    pinned : bool
        Page-locked memory, from torch's own pool, which knows when a copy to the device has ended.

    Notes
    -----
    `take` may be called from several threads; memory may come back in any thread.
    """

    def __init__(
        self, fields: Sequence[Field], n_parameters: int, count: int | None = None, *, pinned: bool = False
    ) -> None:
        lead = () if count is None else (count,)
        self._layout: list[tuple[str, tuple[int, ...], np.dtype[Any], int]] = []
        size = 0
        arrays = [(field.name, lead + field.shape, field.dtype) for field in fields]
        arrays += [("parameters", (*lead, n_parameters), "float64")]
        arrays += [("time", lead, "float64"), ("step", lead, "int64"), ("simulation", lead, "int64")]
        for name, shape, dtype_name in arrays:
            dtype = np.dtype(dtype_name)
            self._layout.append((name, shape, dtype, size))
            size += _round_up(max(1, math.prod(shape)) * dtype.itemsize)
        self._size = size
        self._n_fields = len(fields)
        self._pinned = pinned
        self._keep = max(2, _KEEP_BYTES // size)
        self._free: list[npt.NDArray[np.uint8]] = []
        self._lock = threading.RLock()  # a block may come back while this thread is inside `take`

    @property
    def free(self) -> int:
        """Number of blocks that wait to be used again."""
        return len(self._free)

    def take(self) -> Batch:
        """Memory that nothing else refers to, with undefined contents; it comes back by itself."""
        tensors = self._pinned_tensors() if self._pinned else self._pool_tensors()
        addresses = [tensor.data_ptr() for tensor in tensors.values()]
        pointers = (ctypes.c_void_p * self._n_fields)(*addresses[: self._n_fields])
        return Batch(tensors, addresses, pointers)

    def _pool_tensors(self) -> dict[str, torch.Tensor]:
        with self._lock:
            # Last in, first out: the block most likely still in cache.
            block = self._free.pop() if self._free else np.empty(self._size + _ALIGNMENT, np.uint8)
        address = _round_up(block.ctypes.data)
        lease = _Lease(address, self._size)
        weakref.finalize(lease, self._put_back, block).atexit = False
        memory = np.asarray(lease)
        return {
            name: torch.from_numpy(np.ndarray(shape, dtype, memory, offset))
            for name, shape, dtype, offset in self._layout
        }

    def _pinned_tensors(self) -> dict[str, torch.Tensor]:
        return {
            name: torch.empty(shape, dtype=getattr(torch, dtype.name), pin_memory=True)
            for name, shape, dtype, _ in self._layout
        }

    def _put_back(self, block: npt.NDArray[np.uint8]) -> None:
        with self._lock:
            if len(self._free) < self._keep:
                self._free.append(block)


def _round_up(number: int) -> int:
    return -(-number // _ALIGNMENT) * _ALIGNMENT
