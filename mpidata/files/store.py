"""A loader's memory: rows of the parts of a block that it holds, each where its number says."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.files.blocks import Block
from mpidata.files.columns import Spec

__all__ = ["Store", "order_of"]

_NO_RESERVE = 0x4000  # MAP_NORESERVE, which not all versions of Python name


class Store:
    """Rows of a block.

    Parameters
    ----------
    spec : Spec
        Columns.
    rows : int
        Number of rows in the block, of all loaders.

    Notes
    -----
    There are addresses for all of the block's rows, but only memory for those that were put.
    """

    def __init__(self, spec: Spec, rows: int) -> None:
        self.spec = spec
        self._columns = [_sparse((rows, *shape), np.dtype(dtype)) for _, dtype, shape in spec]

    def put(self, first: int, chunk: dict[str, npt.NDArray[Any]]) -> None:
        """Put rows, the first of which has this number."""
        for column, rows in zip(self._columns, chunk.values(), strict=True):
            column[first : first + len(rows)] = rows

    def take(self, rows: npt.NDArray[np.int64]) -> list[memoryview]:
        """Copy rows of these numbers, one behind the other; the memory of each column."""
        taken = []
        for column in self._columns:
            target = np.empty((len(rows), *column.shape[1:]), column.dtype)
            np.take(column, rows, axis=0, out=target, mode="clip")
            taken.append(target.reshape(-1).view(np.uint8).data)
        return taken


def order_of(block: Block, parts: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Sort the rows of some parts of a block by their places.

    Returns
    -------
    ndarray of uint64, shape (rows,)
        Place << b | row, where b are the bits of the block's number of rows.
    """
    if block.rows >= 1 << 31:
        raise StreamError(f"{block.rows} rows are too many for one block on several loaders: give shuffle='parts'.")
    where = {part: i for i, part in enumerate(block.parts)}
    ranges = [(block.starts[where[part]], block.starts[where[part] + 1]) for part in parts]
    rows = np.concatenate([np.arange(*ends, dtype=np.int64) for ends in ranges] or [np.empty(0, np.int64)])
    words = np.array(block.places_of(rows))
    words <<= block.rows.bit_length()
    words |= rows
    words.sort()
    return words.view(np.uint64)


def _sparse(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    size = int(np.prod(shape)) * dtype.itemsize
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count=int(np.prod(shape))).reshape(shape)
