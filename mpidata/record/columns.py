"""Columns of a record's file: the offsets of their rows in the file, and tables of columns that grow together."""

from __future__ import annotations

import bisect
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.dtypes import mark_dataset, numpy_dtype
from mpidata.record.layout import column_of
from mpidata.run.plan import Field

__all__ = ["Column", "Entry", "Table", "size_of", "write_all"]

# One chunk of each column, taken together, has about TOGETHER_BYTES, however many fields there are: the same number of
# rows in all columns, but more in small ones, because many chunks make HDF5 slow; these have EVENLY_BYTES together. The
# number of rows of fields with lengths is unknown: one chunk of each, taken together, also has TOGETHER_BYTES.
TOGETHER_BYTES = 4 << 20
EVENLY_BYTES = 1 << 20
_GROWTH = 16  # columns grow by this fraction, 1 / 16, of their rows


def size_of(row: tuple[int, ...], dtype: str) -> int:
    """Bytes of a row."""
    return math.prod(row) * numpy_dtype(dtype).itemsize


def write_all(descriptor: int, memory: memoryview, offset: int) -> None:
    """Write at an offset of a file; raises OSError."""
    while memory:
        done = os.pwrite(descriptor, memory, offset)
        memory, offset = memory[done:], offset + done


class Entry(NamedTuple):
    """A column to create; `fill`: the value of unused rows."""

    name: str
    row: tuple[int, ...]
    dtype: str
    fill: int | None = None


class _Run(NamedTuple):
    """Rows that are contiguous in the file."""

    first: int
    end: int
    offset: int


class Column:
    """A dataset and the offsets of its rows, of which the first `rows` are used."""

    def __init__(
        self, parent: h5py.Group, name: str, row: tuple[int, ...], dtype: str, chunk_rows: int, fill: int | None = None
    ) -> None:
        self.name = name
        self.row_bytes = size_of(row, dtype)
        self.chunk_rows = chunk_rows
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        self.dataset = parent.create_dataset(
            name, (0, *row), numpy_dtype(dtype), chunks=(self.chunk_rows, *row), maxshape=(None, *row), fillvalue=fill,
            fill_time="alloc" if fill is not None else "never", dcpl=properties,
        )  # fmt: skip
        mark_dataset(self.dataset, dtype)
        self.rows = 0
        self._runs: list[_Run] = []

    @property
    def room(self) -> int:
        """Number of rows for which there is room."""
        return self._runs[-1].end if self._runs else 0

    def grow(self, rows: int) -> None:
        """Make room for at least this total number of rows; for more, because HDF5 needs long to find their offsets."""
        first = self.room // self.chunk_rows
        end = max(-(-rows // self.chunk_rows), first + first // _GROWTH)
        self.dataset.id.set_extent((end * self.chunk_rows, *self.dataset.shape[1:]))
        self._runs += self._find(first, self._offset(first), end - 1, self._offset(end - 1))

    def places(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        """Yield offset in the file and number of rows, for each piece of the rows [first, first + count)."""
        at = bisect.bisect_right(self._runs, first, key=lambda run: run.first) - 1
        while count > 0:
            run = self._runs[at]
            n = min(count, run.end - first)
            yield run.offset + (first - run.first) * self.row_bytes, n
            first, count, at = first + n, count - n, at + 1

    def write(self, descriptor: int, array: npt.NDArray[Any]) -> None:
        """Add rows, for which there is room."""
        memory = np.ascontiguousarray(array, self.dataset.dtype).reshape(-1).view(np.uint8).data
        for offset, n in self.places(self.rows, len(array)):
            write_all(descriptor, memory[: n * self.row_bytes], offset)
            memory = memory[n * self.row_bytes :]
        self.rows += len(array)

    @property
    def end(self) -> int:
        """Offset in the file after all rows."""
        return max(run.offset + (run.end - run.first) * self.row_bytes for run in self._runs)

    def _offset(self, chunk: int) -> int:
        where = (chunk * self.chunk_rows, *[0] * (self.dataset.ndim - 1))
        return int(self.dataset.id.get_chunk_info_by_coord(where).byte_offset)

    def _find(self, first: int, first_offset: int, last: int, last_offset: int) -> list[_Run]:
        """Find the chunks [first, last] in the file. HDF5 needs long for the offset of one, but most are contiguous."""
        rows = self.chunk_rows
        if last_offset - first_offset == (last - first) * rows * self.row_bytes:
            return [_Run(first * rows, (last + 1) * rows, first_offset)]
        middle = (first + last) // 2
        ahead = self._find(first, first_offset, middle, self._offset(middle))
        return ahead + self._find(middle + 1, self._offset(middle + 1), last, last_offset)


class Table:
    """Columns with one row per entry of the table, and fields with lengths, which have their own numbers of rows.

    Parameters
    ----------
    file : h5py.File
        File to which they are added.
    group : str
        Path of the group of the fields, with a `/` at its end.
    fields : sequence of Field
        The fields.
    index : sequence of Entry
        The other columns. A row is valid once it is in the last one, which must be written last.
    """

    def __init__(self, file: h5py.File, group: str, fields: Sequence[Field], index: Sequence[Entry]) -> None:
        sizes = [size_of(entry.row, entry.dtype) for entry in index]
        sizes += [size_of(field.extents(), field.dtype) for field in fields if not field.length]
        joined = sum(bool(field.length) for field in fields)

        def rows(row: tuple[int, ...], dtype: str) -> int:
            return max(1, TOGETHER_BYTES // sum(sizes), EVENLY_BYTES // len(sizes) // size_of(row, dtype))

        def column(field: Field) -> Column:
            row, _ = column_of(field)
            chunk = max(1, TOGETHER_BYTES // joined // size_of(row, field.dtype)) if field.length else 0
            return Column(file, group + field.name, row, field.dtype, chunk or rows(row, field.dtype))

        self.fields = [column(field) for field in fields]
        *self.index, self.last = (
            Column(file, name, row, dtype, rows(row, dtype), fill) for name, row, dtype, fill in index
        )

    @property
    def columns(self) -> list[Column]:
        """All of them, the last one last."""
        return [*self.fields, *self.index, self.last]

    def make_room(self, of_fields: Sequence[int], count: int, flush: Callable[[int], None]) -> None:
        """Grow the columns that are too short for these additional rows of each field, and of the other columns.

        Each grows separately, because row sizes may differ much. `flush`, which gets the end of the rows in the file,
        must write the datasets' sizes.
        """
        others = [(column, count) for column in self.index]
        for columns in (
            [*zip(self.fields, of_fields, strict=True), *others],
            [(self.last, count)],
        ):  # readers expect the last one to be the shortest
            short = [(column, more) for column, more in columns if column.room < column.rows + more]
            for column, more in short:
                column.grow(column.rows + more)
            if short:
                flush(max(column.end for column, _ in short))
