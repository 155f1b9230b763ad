"""Truncating the columns of a record to their used rows, so that the file is readable whenever the process ends.

HDF5 changes a file by many small writes, and meanwhile marks it as one that must not be opened. Therefore it works on a
view that keeps its writes in memory. They are then written to the file, which is readable before and after each write.
A file with little data is rewritten, with chunks of the size of its columns.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from mpidata.run.own_files import new_file

__all__ = ["repack", "shrink"]

_GROUPS = ("fields", "lengths", "given", "constants/fields", "constants/lengths", "constants")


def shrink(path: Path, rows: Mapping[str, int]) -> None:
    """Truncate the columns of a closed file to these rows; raises OSError, after which the file is still readable."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        for first in (True, False):  # readers expect these to be the shortest
            view = _View(descriptor)
            with h5py.File(view, "r+", libver=("v110", "v110")) as file:
                for column in _columns(file):
                    name = column.name.strip("/")
                    if not first or name.rpartition("/")[2] == "simulation":
                        column.resize(rows[name], axis=0)
            view.store()
    except (RuntimeError, ValueError) as error:
        raise OSError(str(error)) from None
    finally:
        os.close(descriptor)


def repack(path: Path, chunk_bytes: int) -> None:
    """Replace a closed file by one whose columns fill their chunks of up to `chunk_bytes`; raises OSError.

    The new file is made in memory, because HDF5 crashes if it cannot write a file.
    """
    memory = io.BytesIO()
    with h5py.File(path, rdcc_nbytes=0) as old, h5py.File(memory, "w", libver=("v110", "v110"), rdcc_nbytes=0) as new:
        new.attrs.update(old.attrs)
        for group in ("fields", *(["constants/fields"] if "constants" in old else [])):
            new.create_group(group, track_order=True)
        for column in _columns(old):
            rows, *row = column.shape
            chunks = max(1, min(rows, -(-column.nbytes // chunk_bytes)))
            copy = new.create_dataset(
                column.name, data=column[()], chunks=(max(1, -(-rows // chunks)), *row), maxshape=(None, *row),
                fillvalue=column.fillvalue,
            )  # fmt: skip
            copy.attrs.update(column.attrs)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    new_file(beside)
    try:
        with open(beside, "r+b") as file:
            file.write(memory.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _columns(file: h5py.File) -> list[h5py.Dataset]:
    groups = (*(file.get(name, {}) for name in _GROUPS), file)
    columns = (column for group in groups for column in group.values())
    return [column for column in columns if isinstance(column, h5py.Dataset)]


class _View(io.RawIOBase):
    """A view of a file that keeps writes in memory."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = 0
        self._size = os.fstat(descriptor).st_size
        self._written: list[tuple[int, bytes]] = []

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        memory = memoryview(buffer).cast("B")
        end = self._at + len(memory)
        found = os.preadv(self._descriptor, [memory], self._at)
        memory[found:] = bytes(len(memory) - found)
        for offset, data in self._written:
            first, last = max(offset, self._at), min(offset + len(data), end)
            if first < last:
                memory[first - self._at : last - self._at] = data[first - offset : last - offset]
        self._at = end
        return len(memory)

    def write(self, data: Any) -> int:
        copy = bytes(data)
        self._written.append((self._at, copy))
        self._at += len(copy)
        self._size = max(self._size, self._at)
        return len(copy)

    def truncate(self, size: int | None = None) -> int:
        self._size = self._at if size is None else size
        return self._size

    def store(self) -> None:
        """Write the changes to the file; the superblock at its beginning last, because it has the end of the file."""
        for offset, data in sorted(self._written, key=lambda write: write[0] == 0):
            done = 0
            while done < len(data):
                done += os.pwrite(self._descriptor, data[done:], offset + done)
        os.ftruncate(self._descriptor, self._size)
