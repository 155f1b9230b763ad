"""The file of a trainer in a checkpoint: HDF5, laid out by h5py, its large arrays written past it.

h5py holds the GIL while it writes, which would stop the training. So the file is made with contiguous datasets whose
space is allocated at once, closed, and the arrays are written to their places by calls that release the GIL.

Attributes of the file: see `Head`. Datasets, n samples of the places buffer, waiting, retired, validation in turn:
`fields/<name>` (n, *shape); `parameters` (n, p) float64; `time` float64, `step`, `simulation` int64, `seen` uint8, all
(n,); `ledger/steps`, `whole`, `complete`, `words`, `bits` (see c_api/src/ledger.h); `state/<name>`, bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.own_files import new_file
from mpidata.plan import Field, Plan

__all__ = ["FORMAT", "LEDGER", "Head", "TrainerFile", "write"]

FORMAT = "mpidata-checkpoint 1"
LEDGER = ("steps", "whole", "complete", "words", "bits")
_Array = NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Head:
    """Numbers of a trainer's snapshot and of its job; `mpidata_snapshot` of c_api/src/snapshot.h has most of them.

    `plan_capacity` is that of the job file, `simulations` counts those trained on.
    """

    number: int
    trainer: int
    trainers: int
    batch: int
    count: tuple[int, ...]
    unseen: int
    next_retired: int
    capacity: int
    plan_capacity: int
    added: int
    random: tuple[int, ...]
    statistics: tuple[int, ...]
    policy: str
    simulations: int


def write(
    path: Path,
    head: Head,
    fields: tuple[Field, ...],
    arrays: Mapping[str, _Array],
    write_fields: Callable[[int, list[int]], None],
) -> None:
    """Write the file and wait until the disk has it.

    Parameters
    ----------
    path : Path
        The file, which is made.
    head : Head
        Its attributes.
    fields : tuple of Field
        Those of the job.
    arrays : mapping of str to ndarray
        The other datasets by name, with `/` for groups; C order.
    write_fields : callable
        Given the file's descriptor and the place of each field's dataset in the file (in bytes), writes their contents.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    samples = sum(head.count)
    new_file(path)
    with h5py.File(path, "w") as file:
        file.attrs["format"] = FORMAT
        for name, value in dataclasses.asdict(head).items():
            dtype = "u8" if name == "random" else None if isinstance(value, str) else "i8"
            file.attrs.create(name, value, dtype=dtype)
        for group in ("fields", "ledger", "state"):
            file.create_group(group)
        field_places = [_allocate(file, f"fields/{f.name}", (samples, *f.shape), np.dtype(f.dtype)) for f in fields]
        places = {name: _allocate(file, name, array.shape, array.dtype) for name, array in arrays.items()}
    handle = os.open(path, os.O_WRONLY)
    try:
        for name, array in arrays.items():
            _write_at(handle, array, places[name])
        write_fields(handle, field_places)
        os.fsync(handle)
    finally:
        os.close(handle)


def _allocate(file: h5py.File, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Make a dataset whose bytes have their place in the file at once; returns it, 0 where there are no bytes."""
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_layout(h5py.h5d.CONTIGUOUS)
    options.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    options.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    kind = h5py.h5t.py_create(dtype, logical=True)
    dataset = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), options)
    place: int | None = dataset.get_offset()
    if place is None and all(shape):
        raise OSError(f"HDF5 has not allocated {name}")
    return place or 0


def _write_at(handle: int, array: _Array, place: int) -> None:
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        written = os.pwrite(handle, left[: 16 << 20], place)
        left, place = left[written:], place + written


def _plain(value: Any) -> Any:
    """Turn an attribute into what Python computes with: str, int or tuple of int."""
    if isinstance(value, str):
        return value
    return tuple(map(int, value)) if np.ndim(value) else int(value)


class TrainerFile:
    """A trainer's file of a checkpoint, to be read.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    StreamError
        It cannot be read or is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.readable():
            self._file = h5py.File(path, "r")
            found = self._file.attrs.get("format")
            if found != FORMAT:
                raise ValueError(f"it is of format {found!r}, not {FORMAT!r}")
            names = [field.name for field in dataclasses.fields(Head)]
            self.head = Head(**{name: _plain(self._file.attrs[name]) for name in names})
            self.step: NDArray[np.int64] = self._file["step"][()]
            self.simulation: NDArray[np.int64] = self._file["simulation"][()]
            self.seen: NDArray[np.bool_] = self._file["seen"][()] != 0
            self.ledger: dict[str, _Array] = {name: self._file[f"ledger/{name}"][()] for name in LEDGER}
            samples = sum(self.head.count)
            if {len(self.step), len(self.simulation), len(self.seen)} != {samples}:
                raise ValueError(f"its {samples} samples are not all there")

    def __enter__(self) -> TrainerFile:
        """Return the file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Turn what h5py raises into a StreamError that names the file."""
        try:
            yield
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise StreamError(
                f"The checkpoint cannot be continued: {self.path} cannot be read: {error}. Remove the checkpoint's "
                "folder, and resume from the one before."
            ) from None

    def check(self, plan: Plan) -> None:
        """Raise StreamError unless the samples are of the fields, parameters and simulations of a plan."""
        head, count = self.head, plan.simulations + plan.validation
        with self.readable():
            found = {name: (str(d.dtype), d.shape[1:]) for name, d in self._file["fields"].items()}
            parameters = self._file["parameters"].shape[1]
        if found != {field.name: (field.dtype, field.shape) for field in plan.fields}:
            what = "other fields"
        elif parameters != len(plan.parameters):
            what = f"{parameters} parameters instead of {len(plan.parameters)}"
        elif head.simulations != plan.simulations or len(self.ledger["steps"]) != count:
            what = f"{head.simulations} simulations and {len(self.ledger['steps']) - head.simulations} for validation"
        elif head.policy != plan.policy:
            what = f"buffer.policy {head.policy} instead of {plan.policy}"
        else:
            return
        raise StreamError(
            f"The checkpoint cannot be continued: {self.path} has {what}. Resume it with the job file it was made with."
        )

    def rows(self, name: str, first: int, last: int) -> _Array:
        """Read rows first to last - 1 of a dataset."""
        with self.readable():
            rows: _Array = self._file[name][first:last]
        return rows

    def state(self) -> dict[str, bytes]:
        """Read the registered objects' states."""
        with self.readable():
            return {name: data[()].tobytes() for name, data in self._file["state"].items()}
