"""Writing one file of a record.

HDF5 only allocates: many chunks at a time. Samples are then written from their slots directly into the file, without a
copy, the GIL or h5py's lock, which a training loop may need. A full disk therefore rejects a sample, and not HDF5's
metadata. The file is in HDF5's single-writer mode, so that it can be read at any moment, also if its writer was killed.
A sample of a field with a length may end in another part of the file than it begins; only such a sample is copied.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.record import columns
from mpidata.record.columns import Entry, Table, size_of, write_all
from mpidata.record.layout import EMPTY, Header, column_of
from mpidata.record.shrink import repack, shrink
from mpidata.run.own_files import new_file
from mpidata.run.plan import Field

__all__ = ["RecordFile", "Rows"]

_LONG, _LONG_BYTES = 1.1, 1 << 19  # a file that exceeds its contents by more is rewritten when it is closed
_MOST_CHUNK_BYTES = (1 << 32) - 1  # of HDF5
_METADATA_BYTES = 4 << 20  # more than HDF5 adds to a file when it grows
_NO_NUMBERS, _NO_CONSTANTS = np.empty((0, 0), np.int64), np.empty(0, np.int64)
_Write: TypeAlias = Callable[[int, int, int, int, int], None]


class Rows(NamedTuple):
    """Columns of some samples: simulation, step (int64), time (float64), validation (uint8), parameters (n, p).

    And `numbers`, (n, n_numbers) int64, in the header's order; `constants`, (n,) int64, results of `append_constants`.
    """

    simulation: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    time: npt.NDArray[np.float64]
    validation: npt.NDArray[np.uint8]
    parameters: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64] = _NO_NUMBERS
    constants: npt.NDArray[np.int64] = _NO_CONSTANTS

    def part(self, first: int, end: int) -> Rows:
        """Return the samples [first, end)."""
        return Rows(*(column[first:end] for column in self))  # type: ignore[arg-type]


class RecordFile:
    """A new file of a record.

    Parameters
    ----------
    path : Path
        The path, at which there is no file yet.
    header : Header
        Describes the samples.

    Raises
    ------
    MpidataError
        A field is too large for a chunk of HDF5.
    OSError
        The file cannot be written.

    Notes
    -----
    For one thread. The file appears under its name once it can be read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.rows = 0
        self._open = threading.Lock()  # held while the file is closed or must stay open
        beside = path.with_name(f".{path.name}.new")
        beside.unlink(missing_ok=True)  # from a trainer that was killed
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
        self._file.create_group("fields", track_order=True)
        _check_sizes(header)
        self._header = header
        self._fields = [(n, field) for n, field in enumerate(header.fields) if not field.per_simulation]
        index = [
            *(Entry("time", (), "f8"), Entry("step", (), "i8"), Entry("validation", (), "u1")),
            *(Entry(name, (), dtype) for name, dtype in header.number_columns.items()),
            *([Entry("constants/of", (), "i8")] if header.constants else []),
            *([Entry("parameters", (len(header.parameters),), "f8")] if header.parameters else []),
            Entry("simulation", (), "i8", EMPTY),
        ]
        self._samples = Table(self._file, "fields/", [field for _, field in self._fields], index)
        self._tables = [self._samples]
        if header.constants:
            self._file.create_group("constants/fields", track_order=True)
            index = [Entry(f"constants/lengths/{name}", (), "i8") for name in header.constant_lengths]
            index += [Entry("constants/try", (), "i8"), Entry("constants/simulation", (), "i8", EMPTY)]
            self._tables.append(Table(self._file, "constants/fields/", header.constants, index))
        self._file.swmr_mode = True

    def append_constants(
        self, simulation: int, by_try: int, lengths: Sequence[int], values: Sequence[npt.NDArray[Any] | None]
    ) -> int:
        """Add the constants of a try; returns their row, for `Rows.constants` of its samples.

        `lengths` are in the order of the header's `constant_lengths`, `values` in that of its `constants`, in the
        `numpy_dtype` of these; zeros are written for None. Raises OSError.
        """
        of, table = dict(zip(self._header.constant_lengths, lengths, strict=True)), self._tables[1]
        rows = [field.extents(of) for field in self._header.constants]
        shapes = [(1, *shape) for shape in rows]
        counts = [1] * len(shapes)
        for place, field in enumerate(self._header.constants):
            if field.length:
                row, each = column_of(field)
                counts[place] = of[field.length] * each
                shapes[place] = (counts[place], *row)
        table.make_room(counts, 1, self._flush)
        for column, shape, array in zip(table.fields, shapes, values, strict=True):
            dtype = column.dataset.dtype
            column.write(self._descriptor, np.zeros(shape, dtype) if array is None else array.reshape(shape))
        for column, number in zip((*table.index, table.last), (*lengths, by_try, simulation), strict=True):
            column.write(self._descriptor, np.array([number], np.int64))
        return table.last.rows - 1

    def append(self, rows: Rows, write: _Write) -> None:
        """Add samples.

        Parameters
        ----------
        rows : Rows
            Their columns.
        write : callable
            Called with (file descriptor, number of the field, first sample, count, offset in the file) to write a
            field of samples [first, first + count) there, contiguously.

        Raises
        ------
        OSError
            They cannot be written; the file then has only the earlier samples.
        """
        count, table = len(rows.simulation), self._samples
        ends = [self._ends(field, rows) for _, field in self._fields]
        table.make_room([int(of[-1]) for of in ends], count, self._flush)
        for place, of in enumerate(ends):
            self._write_field(place, of, write)
        values: list[npt.NDArray[Any]] = [rows.time, rows.step, rows.validation, *rows.numbers.T]
        values += [rows.constants] if self._header.constants else []
        for column, array in zip(table.index, [*values, rows.parameters], strict=False):
            column.write(self._descriptor, array)
        table.last.write(self._descriptor, rows.simulation)  # last, because it makes the rows valid
        self.rows += count

    def _ends(self, field: Field, rows: Rows) -> npt.NDArray[np.int64]:
        """Return the number of rows that a field's column needs for the samples up to and including each."""
        if not field.length:
            return np.arange(1, len(rows.simulation) + 1)
        _, each = column_of(field)
        ends: npt.NDArray[np.int64] = np.cumsum(rows.numbers[:, self._header.lengths.index(field.length)]) * each
        return ends

    def _write_field(self, place: int, ends: npt.NDArray[np.int64], write: _Write) -> None:
        column, number, done, first, last = self._samples.fields[place], self._fields[place][0], 0, 0, int(ends[-1])
        while first < last:
            offset, n = next(column.places(column.rows + first, last - first))
            whole = int(np.searchsorted(ends, first + n, side="right")) - done
            if whole:
                write(self._descriptor, number, done, whole, offset)
            else:  # its end is elsewhere in the file
                whole = 1
                self._write_pieces(column, number, done, first, int(ends[done]) - first, write)
            done += whole
            first = int(ends[done - 1])
        column.rows += last

    def _write_pieces(
        self, column: columns.Column, number: int, sample: int, first: int, rows: int, write: _Write
    ) -> None:
        """Write one sample whose rows are not contiguous in the file."""
        with open(os.memfd_create("mpidata-record", os.MFD_CLOEXEC), "w+b") as copy:
            write(copy.fileno(), number, sample, 1, 0)
            for offset, n in column.places(column.rows + first, rows):
                write_all(self._descriptor, memoryview(copy.read(n * column.row_bytes)), offset)

    def sync(self) -> None:
        """Wait until everything written so far is on the disk; any thread may call, also while another one writes."""
        with self._open:
            if not self._file:
                raise OSError("the file is closed")
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Release unused room and close the file; raises OSError if the disk cannot be written."""
        with self._open:
            if not self._file:
                return
            # Check that before, because HDF5 crashes if it cannot write its changes.
            os.pwrite(self._descriptor, os.pread(self._descriptor, 8, 0), 0)
            os.fsync(self._descriptor)
            try:
                self._file.close()
            except (OSError, RuntimeError, ValueError) as error:
                raise OSError(str(error)) from None
            os.close(self._descriptor)
        with contextlib.suppress(OSError, RuntimeError, ValueError, MemoryError):  # the file is readable as it is
            written = [column for table in self._tables for column in table.columns]
            shrink(self.path, {column.name: column.rows for column in written})
            contents = sum(column.rows * column.row_bytes for column in written)
            if os.path.getsize(self.path) > _LONG * contents + _LONG_BYTES:  # never true of a large file
                repack(self.path, columns.TOGETHER_BYTES)

    def abandon(self) -> None:
        """Leave the file as a killed writer would: after an error nothing more is written to it."""
        with self._open:
            if not self._file:
                return
            # HDF5 crashes, now or at the end of the process, if it cannot write its pending changes.
            memory = os.memfd_create("mpidata-record", os.MFD_CLOEXEC)
            os.dup2(memory, self._file.id.get_vfd_handle(), inheritable=False)
            os.close(memory)
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self._file.close()
            os.close(self._descriptor)

    def _flush(self, end: int) -> None:
        """Write the datasets' sizes to the file, whose last rows end at `end`."""
        # HDF5 notes the file's size before it extends the file: a killed writer must not leave it too short.
        if os.fstat(self._descriptor).st_size < end + _METADATA_BYTES:
            os.ftruncate(self._descriptor, end + _METADATA_BYTES)
        self._file.flush()


def _check_sizes(header: Header) -> None:
    for field in header.fields:
        size, what = (
            size_of(column_of(field)[0], field.dtype),
            f"index of {field.length!r}" if field.length else "sample",
        )
        if size > _MOST_CHUNK_BYTES:
            raise MpidataError(
                f"Field '{field.name}' cannot be recorded: one {what} has {size} bytes, but a chunk of HDF5 has at "
                f"most {_MOST_CHUNK_BYTES}. Remove `record` from the job file, or split the field."
            )
