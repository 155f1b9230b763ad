"""One file of a record, as it is written.

HDF5 only makes room: chunks are allocated many at a time, and samples then go from their slots to their places in the
file, without a copy, the GIL or h5py's lock, which a training loop may need. What a full disk refuses is then a sample
and not HDF5's bookkeeping. The file is in HDF5's single-writer mode, so that it can be read at any moment, also when
its writer was killed. A sample of a field with a length may end in another part of the file than it begins; only such
a one is copied.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.dtypes import mark_dataset, numpy_dtype
from mpidata.errors import MpidataError
from mpidata.record.layout import EMPTY, Header, column_of
from mpidata.record.shrink import repack, shrink
from mpidata.run.own_files import new_file
from mpidata.run.plan import Field

__all__ = ["RecordFile", "Rows"]

# One chunk of each column has together about _TOGETHER_BYTES, however many fields there are: as many rows in all
# columns, but more in small ones, as many chunks make HDF5 slow; these have _EVENLY_BYTES in all. How many rows there
# will be of fields with lengths is not known: one chunk of each has together _TOGETHER_BYTES, too.
_TOGETHER_BYTES = 4 << 20
_EVENLY_BYTES = 1 << 20
_GROWTH = 16  # columns grow by this part of what they have
_LONG, _LONG_BYTES = 1.1, 1 << 19  # a file that is longer than its contents by more is written again at its end
_MOST_CHUNK_BYTES = (1 << 32) - 1  # of HDF5
_METADATA_BYTES = 4 << 20  # more than HDF5 adds to a file when it grows
_NO_NUMBERS = np.empty((0, 0), np.int64)
_Write: TypeAlias = Callable[[int, int, int, int, int], None]


class Rows(NamedTuple):
    """Columns of some samples: simulation, step (int64), time (float64), validation (uint8), parameters (n, p).

    And `numbers`, (n, n_numbers) int64, in the header's order.
    """

    simulation: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    time: npt.NDArray[np.float64]
    validation: npt.NDArray[np.uint8]
    parameters: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64] = _NO_NUMBERS

    def part(self, first: int, end: int) -> Rows:
        """Get the samples [first, end)."""
        return Rows(*(column[first:end] for column in self))  # type: ignore[arg-type]


class _Run(NamedTuple):
    """Rows that lie in the file one behind the other."""

    first: int
    end: int
    offset: int


class _Column:
    """A dataset and where its rows lie; `rows` of them hold something."""

    def __init__(
        self, parent: h5py.Group, name: str, row: tuple[int, ...], dtype: str, chunk_rows: int, fill: int | None = None
    ) -> None:
        self.row_bytes = _size(row, dtype)
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
        """Rows for which there is room."""
        return self._runs[-1].end if self._runs else 0

    def grow(self, rows: int) -> None:
        """Make room for so many rows in all, and for more: HDF5 takes its time to tell where the new ones lie."""
        first = self.room // self.chunk_rows
        end = max(-(-rows // self.chunk_rows), first + first // _GROWTH)
        self.dataset.id.set_extent((end * self.chunk_rows, *self.dataset.shape[1:]))
        self._runs += self._find(first, self._offset(first), end - 1, self._offset(end - 1))

    def places(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        """Offset in the file and number of rows, for each piece of the rows [first, first + count)."""
        at = bisect.bisect_right(self._runs, first, key=lambda run: run.first) - 1
        while count > 0:
            run = self._runs[at]
            n = min(count, run.end - first)
            yield run.offset + (first - run.first) * self.row_bytes, n
            first, count, at = first + n, count - n, at + 1

    @property
    def end(self) -> int:
        """Offset in the file behind all rows."""
        return max(run.offset + (run.end - run.first) * self.row_bytes for run in self._runs)

    def _offset(self, chunk: int) -> int:
        where = (chunk * self.chunk_rows, *[0] * (self.dataset.ndim - 1))
        return int(self.dataset.id.get_chunk_info_by_coord(where).byte_offset)

    def _find(self, first: int, first_offset: int, last: int, last_offset: int) -> list[_Run]:
        """Where the chunks [first, last] lie: HDF5 needs long to tell the place of one, but most are in a row."""
        rows = self.chunk_rows
        if last_offset - first_offset == (last - first) * rows * self.row_bytes:
            return [_Run(first * rows, (last + 1) * rows, first_offset)]
        middle = (first + last) // 2
        ahead = self._find(first, first_offset, middle, self._offset(middle))
        return ahead + self._find(middle + 1, self._offset(middle + 1), last, last_offset)


class RecordFile:
    """A new file of a record.

    Parameters
    ----------
    path : Path
        There is no such file yet.
    header : Header
        What its samples hold.

    Raises
    ------
    MpidataError
        A field is too large for a chunk of HDF5.
    OSError
        The file cannot be written.

    Notes
    -----
    For one thread. The file appears under its name when it can be read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.rows = 0
        self._open = threading.Lock()  # held by who closes, and who needs it open
        beside = path.with_name(f".{path.name}.new")
        beside.unlink(missing_ok=True)  # of a trainer that was killed
        new_file(beside)
        self._file = h5py.File(beside, "w", libver=("v110", "v110"), rdcc_nbytes=0)
        self._descriptor = os.open(beside, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._lay_out(header)
            os.rename(beside, path)
        except BaseException:
            self.abandon()
            with contextlib.suppress(OSError):
                beside.unlink()
            raise

    def _lay_out(self, header: Header) -> None:
        header.write(self._file)
        fields = self._file.create_group("fields", track_order=True)
        _check_sizes(header)
        index: list[tuple[str, tuple[int, ...], str, int]] = [
            *(("time", (), "f8", 0), ("step", (), "i8", 0), ("validation", (), "u1", 0)),
            *((name, (), dtype, 0) for name, dtype in header.number_columns.items()),
            *([("parameters", (len(header.parameters),), "f8", 0)] if header.parameters else []),
            ("simulation", (), "i8", EMPTY),
        ]
        sizes = [_size(shape, dtype) for _, shape, dtype, _ in index]
        sizes += [_size(field.extents(), field.dtype) for field in header.fields if not field.length]
        joined = sum(bool(field.length) for field in header.fields)

        def rows(shape: tuple[int, ...], dtype: str) -> int:
            return max(1, _TOGETHER_BYTES // sum(sizes), _EVENLY_BYTES // len(sizes) // _size(shape, dtype))

        def column(field: Field) -> _Column:
            row, _ = column_of(field)
            chunk = max(1, _TOGETHER_BYTES // joined // _size(row, field.dtype)) if field.length else 0
            return _Column(fields, field.name, row, field.dtype, chunk or rows(row, field.dtype))

        self._header = header
        self._fields = [column(field) for field in header.fields]
        *self._index, self._simulation = (
            _Column(self._file, name, shape, dtype, rows(shape, dtype), fill) for name, shape, dtype, fill in index
        )
        self._file.swmr_mode = True

    def append(self, rows: Rows, write: _Write) -> None:
        """Add samples.

        Parameters
        ----------
        rows : Rows
            Their columns.
        write : callable
            Called with (file descriptor, number of the field, first sample, count, offset in the file) to write a
            field of samples [first, first + count) there, one behind another.

        Raises
        ------
        OSError
            They cannot be written; the file then has the samples of before.
        """
        count = len(rows.simulation)
        ends = [self._ends(field, rows) for field in self._header.fields]
        self._make_room([int(of[-1]) for of in ends], count)
        for number, of in enumerate(ends):
            self._write_field(number, of, write)
        values: list[npt.NDArray[Any]] = [rows.time, rows.step, rows.validation, *rows.numbers.T, rows.parameters]
        for column, array in zip(self._index, values, strict=False):
            self._write(column, array.astype(column.dataset.dtype, copy=False))
        self._write(self._simulation, rows.simulation)  # last: it makes the rows count
        self.rows += count

    def _ends(self, field: Field, rows: Rows) -> npt.NDArray[np.int64]:
        """Count the rows that the column of a field needs for the samples up to each of them."""
        if not field.length:
            return np.arange(1, len(rows.simulation) + 1)
        _, each = column_of(field)
        ends: npt.NDArray[np.int64] = np.cumsum(rows.numbers[:, self._header.lengths.index(field.length)]) * each
        return ends

    def _write_field(self, number: int, ends: npt.NDArray[np.int64], write: _Write) -> None:
        column, done, first, last = self._fields[number], 0, 0, int(ends[-1])
        while first < last:
            offset, n = next(column.places(column.rows + first, last - first))
            whole = int(np.searchsorted(ends, first + n, side="right")) - done
            if whole:
                write(self._descriptor, number, done, whole, offset)
            else:  # its end lies elsewhere
                whole = 1
                self._write_pieces(number, done, first, int(ends[done]) - first, write)
            done += whole
            first = int(ends[done - 1])
        column.rows += last

    def _write_pieces(self, number: int, sample: int, first: int, rows: int, write: _Write) -> None:
        """Write one sample whose rows do not lie side by side in the file."""
        column = self._fields[number]
        with open(os.memfd_create("mpidata-record", os.MFD_CLOEXEC), "w+b") as copy:
            write(copy.fileno(), number, sample, 1, 0)
            for offset, n in column.places(column.rows + first, rows):
                _write_all(self._descriptor, memoryview(copy.read(n * column.row_bytes)), offset)

    def sync(self) -> None:
        """Wait until the disk has everything written so far; any thread, also while another one writes."""
        with self._open:
            if not self._file:
                raise OSError("the file is closed")
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Give back the room that was not used and close the file; OSError where the disk cannot be written."""
        with self._open:
            if not self._file:
                return
            # Whether it can must be known before, as HDF5 crashes where it cannot write what it has changed.
            os.pwrite(self._descriptor, os.pread(self._descriptor, 8, 0), 0)
            os.fsync(self._descriptor)
            try:
                self._file.close()
            except (OSError, RuntimeError, ValueError) as error:
                raise OSError(str(error)) from None
            os.close(self._descriptor)
        with contextlib.suppress(OSError, RuntimeError, ValueError, MemoryError):  # it can be read as it is
            joined = {f.name: c.rows for f, c in zip(self._header.fields, self._fields, strict=True) if f.length}
            shrink(self.path, self.rows, joined)
            contents = sum(c.rows * c.row_bytes for c in (*self._fields, *self._index, self._simulation))
            if os.path.getsize(self.path) > _LONG * contents + _LONG_BYTES:  # which is not so if there is much in it
                repack(self.path, _TOGETHER_BYTES)

    def abandon(self) -> None:
        """Leave the file as a killed writer does: after an error nothing more is written to it."""
        with self._open:
            if not self._file:
                return
            # HDF5 crashes, now or at the end of the process, where it cannot write what it still has.
            memory = os.memfd_create("mpidata-record", os.MFD_CLOEXEC)
            os.dup2(memory, self._file.id.get_vfd_handle(), inheritable=False)
            os.close(memory)
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self._file.close()
            os.close(self._descriptor)

    def _make_room(self, of_fields: list[int], count: int) -> None:
        """Let the columns grow that are too short for so many rows of each field, and so many of the others.

        Each by itself, as rows may be of very different size.
        """
        others = [(column, count) for column in self._index]
        for columns in (
            [*zip(self._fields, of_fields, strict=True), *others],
            [(self._simulation, count)],
        ):  # a reader takes the last to be the shortest
            short = [(column, more) for column, more in columns if column.room < column.rows + more]
            for column, more in short:
                column.grow(column.rows + more)
            if short:
                self._flush(max(column.end for column, _ in short))

    def _flush(self, end: int) -> None:
        """Have the datasets' sizes in the file, whose last rows end at `end`."""
        # HDF5 notes the file's size before it makes the file as long: a killed writer must not leave it too short.
        if os.fstat(self._descriptor).st_size < end + _METADATA_BYTES:
            os.ftruncate(self._descriptor, end + _METADATA_BYTES)
        self._file.flush()

    def _write(self, column: _Column, array: npt.NDArray[Any]) -> None:
        memory = np.ascontiguousarray(array).data.cast("B")
        for offset, n in column.places(column.rows, len(array)):
            size = n * column.row_bytes
            _write_all(self._descriptor, memory[:size], offset)
            memory = memory[size:]
        column.rows += len(array)


def _write_all(descriptor: int, memory: memoryview, offset: int) -> None:
    while memory:
        done = os.pwrite(descriptor, memory, offset)
        memory, offset = memory[done:], offset + done


def _size(row: tuple[int, ...], dtype: str) -> int:
    return math.prod(row) * numpy_dtype(dtype).itemsize


def _check_sizes(header: Header) -> None:
    for field in header.fields:
        size, what = _size(column_of(field)[0], field.dtype), f"index of {field.length!r}" if field.length else "sample"
        if size > _MOST_CHUNK_BYTES:
            raise MpidataError(
                f"Field '{field.name}' cannot be recorded: one {what} of it has {size} bytes, and HDF5 keeps at most "
                f"{_MOST_CHUNK_BYTES} in a piece. Leave `record` out, or split the field."
            )
