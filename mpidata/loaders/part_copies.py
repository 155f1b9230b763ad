"""A dataset of part files in a loader's memory."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mpidata.errors import StreamError
from mpidata.loading.blocks import Block
from mpidata.loading.columns import Spec, conform, names_of, prepare
from mpidata.loading.formats.chunk import Chunk
from mpidata.loading.formats.hive import keys_of
from mpidata.loading.formats.readers import describe, read_rows
from mpidata.loading.part_messages import Counted, Files, part_text
from mpidata.loading.parts import Part, contents_of
from mpidata.native.loading import load

__all__ = ["Copy"]

_NO_RESERVE = 0x4000  # MAP_NORESERVE, which some versions of Python lack


class _Store:
    """Rows of a block.

    Parameters
    ----------
    spec : Spec
        Columns.
    rows : int
        Number of rows in the block, of all loaders.

    Notes
    -----
    Addresses are reserved for all rows of the block, but only the rows that were put use memory.
    """

    def __init__(self, spec: Spec, rows: int) -> None:
        self.spec = spec
        self._columns = [_sparse((rows, *shape), np.dtype(dtype)) for _, dtype, shape in spec]

    def put(self, first: int, chunk: dict[str, npt.NDArray[Any]]) -> None:
        """Store rows, the first of which has this number."""
        for column, rows in zip(self._columns, chunk.values(), strict=True):
            column[first : first + len(rows)] = rows

    def take(self, rows: npt.NDArray[np.int64]) -> list[memoryview]:
        """Return a contiguous copy of the rows with these numbers, for each column."""
        taken = []
        for column in self._columns:
            target = np.empty((len(rows), *column.shape[1:]), column.dtype)
            row_bytes = column.dtype.itemsize * math.prod(column.shape[1:])
            places = target.ctypes.data, column.ctypes.data, len(column), row_bytes, rows.ctypes.data
            if load().mpidata_gather(*places, len(rows)):
                raise StreamError("FileDataset: a trainer requests rows that are in no part: a fault of mpidata.")
            taken.append(target.reshape(-1).view(np.uint8).data)
        return taken


class _Space:
    """Parts of a block: those that are requested, and those that were read."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.store: _Store | None = None
        self.wanted: set[int] = set()
        self.there: set[int] = set()


class Copy:
    """Rows of the parts that this loader holds.

    Parameters
    ----------
    files : Files
        The dataset.

    Attributes
    ----------
    spec_of : str
        Path of the part that was read first, whose columns the others must have.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.spec_of = ""
        self._keys = keys_of([part.path for part in files.parts])
        self._counts: dict[int, Counted] = {}
        self._spaces: dict[tuple[int, ...], _Space] = {}
        self._spec: Spec | None = None
        self._reading: tuple[_Space, Part, Iterator[None]] | None = None

    def count(self, number: int, alive: Callable[[str], None]) -> Counted:
        """Count the rows of a part and describe its columns; raises StreamError, with its name, if that fails."""
        if number not in self._counts:
            part, names = self.files.parts[number], names_of(self.files.columns)
            self._check_unchanged(part)
            described = describe(part.path, self.files.reader, names, self._keys[number])
            if described is None:
                rows, kinds = 0, None
                for chunk in read_rows(part.path, self.files.reader, names, self._keys[number]):
                    alive(part_text(part))
                    rows += len(next(iter(chunk.values())))
            else:
                rows, kinds = described
            self._counts[number] = Counted(rows, kinds, contents_of(part))
        return self._counts[number]

    def want(self, wanted: dict[Block, set[int]]) -> None:
        """Hold only these parts of these blocks from now on; `reading` reads the missing ones."""
        spaces: dict[tuple[int, ...], _Space] = {}
        for block, parts in wanted.items():
            space = self._spaces.get(block.parts) or spaces.get(block.parts) or _Space(block)
            if block.parts not in spaces:
                space.wanted = set()
            space.wanted |= parts
            spaces[block.parts] = space
        self._spaces = spaces
        if self._reading is not None and self._reading[0] not in spaces.values():
            self._reading = None

    def has(self, block: Block, parts: tuple[int, ...]) -> bool:
        """Whether these parts have been read."""
        space = self._spaces.get(block.parts)
        return space is not None and space.there.issuperset(parts)

    def store(self, block: Block) -> _Store | None:
        """Return the memory of a block; None if nothing was read."""
        return self._spaces[block.parts].store

    def reading(self) -> tuple[Part, Iterator[None]] | None:
        """Return a requested part and an iterator that reads some rows at each step; None if all were read."""
        if self._reading is None:
            for space in self._spaces.values():
                if missing := space.wanted - space.there:
                    number = min(missing, key=space.block.parts.index)
                    self._reading = space, self.files.parts[number], self._read(space, number)
                    break
        return self._reading and self._reading[1:]

    def give_up(self) -> None:
        """Stop reading, because a part cannot be read."""
        self._reading, self._spaces = None, {}

    def _read(self, space: _Space, number: int) -> Iterator[None]:
        part, where = self.files.parts[number], space.block.parts.index(number)
        first, end = space.block.starts[where : where + 2]
        self._check_unchanged(part)
        begin = first
        for raw in read_rows(part.path, self.files.reader, names_of(self.files.columns), self._keys[number]):
            chunk = prepare(part.path, self.files.columns, self.files.transform, raw, first - begin)
            first = self._put(space, part, chunk, first, end)
            yield
        if first != end:
            raise _changed(part)
        space.there.add(number)
        self._reading = None

    def _put(self, space: _Space, part: Part, chunk: Chunk, first: int, end: int) -> int:
        self.spec_of = self.spec_of or part.path
        chunk, self._spec = conform(part.path, chunk, self._spec, self.spec_of)
        rows = len(next(iter(chunk.values())))
        if first + rows > end:
            raise _changed(part)
        if space.store is None:
            space.store = _Store(self._spec, space.block.rows)
        space.store.put(first, chunk)
        return first + rows

    def _check_unchanged(self, part: Part) -> None:
        try:
            status = os.stat(part.path)
        except OSError as error:
            raise StreamError(
                f"{part.path}: {error.strerror} on a loader's node. The file must exist on all nodes."
            ) from None
        if (status.st_size, status.st_mtime_ns) != (part.size, part.time_ns):
            raise _changed(part)


def _changed(part: Part) -> StreamError:
    return StreamError(f"{part.path} changed after the job started. When all parts are complete, restart the job.")


def _sparse(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    size = int(np.prod(shape)) * dtype.itemsize
    memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages refuses this hint
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, count=int(np.prod(shape))).reshape(shape)
