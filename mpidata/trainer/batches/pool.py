"""Memory that is reused only when none of the user's tensors refers to it."""

from __future__ import annotations

import contextlib
import functools
import mmap
import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "MemoryPool", "lease", "round_up"]

ALIGNMENT = 64
_HUGE_PAGE = 2 << 20
_PAGE = 4096
# Free blocks are kept up to this total size, but at least two of any size.
_KEEP_BYTES = 64 << 20

# Memory of the pool, the address of the block in it, and its size in bytes.
_Block: TypeAlias = "tuple[npt.NDArray[np.uint8], int, int]"


class _Lease:
    """Owner of a block while tensors refer to it: all arrays made from it, and their tensors, keep it alive."""

    __slots__ = ("__array_interface__", "_give_back")

    def __init__(self, address: int, size: int, give_back: Callable[[], object]) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
        self._give_back = give_back

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        if not at_exit():  # the objects that `give_back` needs may be gone then
            self._give_back()


def lease(address: int, size: int, give_back: Callable[[], object]) -> npt.NDArray[np.uint8]:
    """Make an array over memory elsewhere; `give_back` is called, in any thread, when nothing refers to it."""
    return np.asarray(_Lease(address, size, give_back))


class MemoryPool:
    """Blocks of memory; `take` may be called from several threads, and blocks may be returned in any thread."""

    def __init__(self) -> None:
        self._free: list[_Block] = []
        self._lock = threading.RLock()  # a block may be returned while this thread is inside `take`

    @property
    def free(self) -> int:
        """Number of blocks that wait for reuse."""
        return len(self._free)

    def take(self, size: int, room: int = 0) -> npt.NDArray[np.uint8]:
        """Return `size` bytes that nothing else refers to, with undefined contents; they go back when unused.

        A new block gets `room` more bytes, so that it can be reused for slightly larger sizes.
        """
        with self._lock:
            # Last in, first out: the block most likely still in cache.
            fits = next((i for i in reversed(range(len(self._free))) if self._free[i][2] >= size), None)
            if fits is not None:
                block = self._free.pop(fits)
            else:
                del self._free[:1]  # too small
                block = _new_block(size if not room else round_up(size + room, _PAGE))
        return lease(block[1], size, functools.partial(self._put_back, block))

    def _put_back(self, block: _Block) -> None:
        with self._lock:
            if len(self._free) < max(2, _KEEP_BYTES // max(1, block[2])):
                self._free.append(block)


def _new_block(size: int) -> _Block:
    if size < _HUGE_PAGE // 2:
        memory = np.empty(size + ALIGNMENT, np.uint8)
        return memory, round_up(memory.ctypes.data, ALIGNMENT), size
    # Private: a forked process has its own, and the advice below does not apply to shared memory.
    mapped = mmap.mmap(-1, size + _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(AttributeError, OSError):  # only advice: without huge pages it is slower
        mapped.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(mapped, np.uint8)
    return memory, round_up(memory.ctypes.data, _HUGE_PAGE), size


def round_up(number: int, to: int) -> int:
    """Round up to a multiple."""
    return -(-number // to) * to
