"""The file of a trainer in a checkpoint: HDF5, laid out by h5py, which does not write its large arrays.

h5py holds the GIL while it writes, which would stop the training. Therefore the file is created with contiguous
datasets whose space is allocated at once, and closed. Calls that release the GIL write the arrays to their places.

Attributes of the file: see `Head`. Datasets, n samples of the places buffer, waiting, retired, validation in order:
`fields/<name>` (n, *shape), bfloat16 as in a record; `parameters` (n, p) float64; `time` float64, `step`, `simulation`
int64, `seen` uint8, all (n,). With windows all except `seen` have a row for each step, and `windows`, (n, W) int64, has
the numbers of these rows. If samples have numbers, `numbers/<name>`, (n,) int64: lengths, and whether an optional field
was put. The values of a field with a length are those of all samples, concatenated, (elements,).
If there are constants, the fields of steps do not contain them, and `constants/of`, (n,) int64, has for each step the
number of its constants among those of the file: `constants/simulation`, `try`, (m,) int64, `numbers`, (m, k) int64, in
the plan's order, -1 for a length that no constant has; and `constants/fields/<name>`, (elements,), all values,
concatenated, none for an optional field that was not put.
`ledger/steps`, `whole`, `complete`, `words`, `bits` (see c_api/src/buffer/ledger.h); `state/<name>`, bytes, and
`sharded/<name>`, bytes, for states of which trainers hold parts; those of mate 1 in `mates/1/state`,
`mates/1/sharded`; with statistics, `scales`, (n, 6) float64.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from mpidata.checkpoint.constants import extents
from mpidata.checkpoint.head import MOST, Head, read_head
from mpidata.checkpoint.ledgers import samples_of
from mpidata.dtypes import dataset_dtype, mark_dataset, numpy_dtype, valid
from mpidata.errors import DAMAGED, StreamError, as_line
from mpidata.native import moments
from mpidata.run.own_files import new_file
from mpidata.run.plan import Field, Plan

__all__ = ["FORMAT", "LEDGER", "Head", "Saved", "TrainerFile", "of_mate", "write"]

FORMAT = "mpidata-checkpoint 1"
LEDGER: dict[str, type[np.generic]] = {
    "steps": np.int64,
    "whole": np.int64,
    "complete": np.uint8,
    "words": np.int64,
    "bits": np.uint64,
}
_Array = NDArray[Any]
_NO_CONSTANTS: Mapping[str, Sequence[_Array]] = {}
_CONSTANTS = ("of", "simulation", "try")


class Saved(NamedTuple):
    """A registered state: as torch.save writes it, or this trainer's pieces of it and the index of all pieces."""

    contents: bytes
    layout: bytes = b""


def of_mate(rank: int) -> str:
    """Name the group with the states of a rank of a replica, with a slash at the end; empty for rank 0."""
    return f"mates/{rank}/" if rank else ""


def write(
    path: Path,
    head: Head,
    fields: tuple[Field, ...],
    arrays: Mapping[str, _Array],
    write_fields: Callable[[int, list[int]], None],
    constants: Mapping[str, Sequence[_Array]] = _NO_CONSTANTS,
) -> None:
    """Write the file and wait until it is on the disk.

    Parameters
    ----------
    path : Path
        The file, which is created.
    head : Head
        Its attributes.
    fields : tuple of Field
        The job's fields, of which `write_fields` writes those of steps.
    arrays : mapping of str to ndarray
        The other datasets by name, with `/` for groups; C order.
    write_fields : callable
        Given the file's descriptor and the offset in the file of each dataset of a step's field, writes their
        contents.
    constants : mapping of str to sequence of ndarray
        Further datasets by name: flat arrays, which are concatenated.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    rows = len(arrays["step"])
    new_file(path)
    with h5py.File(path, "w") as file:
        file.attrs["format"] = FORMAT
        for name, value in dataclasses.asdict(head).items():
            dtype = "u8" if name == "random" else None if isinstance(value, str) else "i8"
            file.attrs.create(name, value, dtype=dtype)
        own = {name.removeprefix("numbers/"): of for name, of in arrays.items() if name.startswith("numbers/")}
        groups = ["numbers"] * bool(own) + ["constants", "constants/fields"] * bool(constants)
        groups += sorted({name.rpartition("/")[0] for name in arrays if name.startswith(("sharded/", "mates/"))})
        for group in ("fields", "ledger", "state", *groups):
            file.create_group(group)
        of_steps = [field for field in fields if not field.per_simulation]
        shapes = [_shape(field, rows, own) for field in of_steps]
        kinds = zip(of_steps, shapes, strict=True)
        field_places = [_allocate(file, f"fields/{f.name}", shape, numpy_dtype(f.dtype)) for f, shape in kinds]
        constant_places = {}
        for field in fields:
            name = f"constants/fields/{field.name}" if field.per_simulation else f"fields/{field.name}"
            if field.per_simulation:
                elements = sum(values.size for values in constants[name])
                constant_places[name] = _allocate(file, name, (elements,), numpy_dtype(field.dtype))
            mark_dataset(file[name], field.dtype)
        places = {name: _allocate(file, name, array.shape, array.dtype) for name, array in arrays.items()}
    handle = os.open(path, os.O_WRONLY)
    try:
        for name, array in arrays.items():
            _write_at(handle, array, places[name])
        for name, place in constant_places.items():
            for values in constants[name]:
                _write_at(handle, values, place)
                place += values.nbytes
        write_fields(handle, field_places)
        os.fsync(handle)
    finally:
        os.close(handle)


def _shape(field: Field, rows: int, numbers: Mapping[str, _Array]) -> tuple[int, ...]:
    """Shape of the dataset with the values of a field; raises KeyError if its length is missing."""
    if not field.length:
        return (rows, *field.extents())
    return (int(numbers[field.length].sum()) * field.row,)


def _allocate(file: h5py.File, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Create a dataset that is allocated at once; returns its offset in the file, 0 if it has no bytes."""
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


class TrainerFile:
    """A trainer's file of a checkpoint, to be read.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    StreamError
        The file cannot be read, or is not a trainer's file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.readable():
            self._bytes = path.stat().st_size
            self._file = h5py.File(path, "r")
            try:
                self._read()
            except BaseException:
                self._file.close()
                raise

    def _read(self) -> None:
        found = self._file.attrs.get("format")
        if not isinstance(found, str) or found != FORMAT:
            raise ValueError(f"it is of format {found!r:.80}, not {FORMAT!r}")
        self.head = read_head(self._file.attrs)
        samples, length = sum(self.head.count), self.head.samples[0]
        self._rows = self._dataset("step").size if length > 1 else samples
        self.windows: NDArray[np.int64] = np.arange(samples, dtype=np.int64)[:, None]
        if length > 1:
            self.windows = self._whole("windows", np.int64, (samples, length))
            if np.any((self.windows < 0) | (self.windows >= self._rows)):
                raise ValueError("windows makes no sense")
        self.step: NDArray[np.int64] = self._whole("step", np.int64, (self._rows,))[self.windows[:, 0]]
        self.simulation: NDArray[np.int64] = self._whole("simulation", np.int64, (self._rows,))[self.windows[:, 0]]
        self.seen: NDArray[np.bool_] = self._whole("seen", np.uint8, (samples,)) != 0
        self.numbers: dict[str, NDArray[np.int64]] = {}
        for name in self._file.get("numbers", ()):
            self.numbers[name] = self._whole(f"numbers/{name}", np.int64, (self._rows,))
            if np.any((self.numbers[name] < 0) | (self.numbers[name] > MOST)):
                raise ValueError(f"numbers/{name} makes no sense")
        self.constants = self._constants() if "constants" in self._file else {}
        rows = self._dataset("ledger/steps").shape
        self.ledger: dict[str, _Array] = {}
        for name, dtype in LEDGER.items():
            size = int(self.ledger["words"].sum()) if name == "bits" else rows[0] if len(rows) == 1 else -1
            self.ledger[name] = self._whole(f"ledger/{name}", dtype, (size,))
            if name != "steps" and dtype is np.int64 and np.any((self.ledger[name] < 0) | (self.ledger[name] > MOST)):
                raise ValueError(f"ledger/{name} makes no sense")

    def _constants(self) -> dict[str, NDArray[np.int64]]:
        """Read everything except the values."""
        n = self._dataset("constants/simulation").size
        arrays = {
            name: self._whole(f"constants/{name}", np.int64, (n if name != "of" else self._rows,))
            for name in _CONSTANTS
        }
        numbers = self._dataset("constants/numbers")
        if numbers.shape[:1] != (n,) or numbers.ndim != 2 or numbers.dtype != np.int64:
            raise ValueError(f"constants/numbers has shape {numbers.shape} and type {numbers.dtype}")
        arrays["numbers"] = numbers[()]
        if np.any((arrays["of"] < 0) | (arrays["of"] >= n)) or np.any(abs(arrays["numbers"]) > MOST):
            raise ValueError("constants/of or constants/numbers makes no sense")
        return arrays

    def _has_constants(self, plan: Plan) -> bool:
        """Whether the constants are those of a plan's fields."""
        if not plan.constants:
            return not self.constants
        if not self.constants or self.constants["numbers"].shape[1] != len(plan.numbers):
            return False
        with self.readable():
            held = {name: self._dataset(f"constants/fields/{name}") for name in self._file["constants/fields"]}
            found = {name: (dataset_dtype(dataset), dataset.shape) for name, dataset in held.items()}
        sizes = {field.name: int(extents(plan, field, self.constants["numbers"]).sum()) for field in plan.constants}
        return found == {field.name: (field.dtype, (sizes[field.name],)) for field in plan.constants}

    def scales(self, n: int) -> NDArray[np.float64]:
        """Read the statistics, (n, 6) float64; raises StreamError if the checkpoint does not have these."""
        if "scales" not in self._file or self._file["scales"].shape != (n, len(moments.numbers())):
            raise StreamError(
                f"Cannot resume from the checkpoint with the present 'samples.statistics': {self.path} was written "
                "with another value. Restore that value."
            )
        with self.readable():
            return self._whole("scales", np.float64, (n, len(moments.numbers())))

    def _dataset(self, name: str) -> h5py.Dataset:
        dataset = self._file[name]
        if not isinstance(dataset, h5py.Dataset) or not isinstance(dataset.shape, tuple):
            raise ValueError(f"{name} is not a dataset")
        if dataset.size * dataset.dtype.itemsize > self._bytes:
            raise ValueError(f"{name} is larger than the file")
        return dataset

    def _whole(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> _Array:
        dataset = self._dataset(name)
        if dataset.shape != shape or dataset.dtype != dtype:
            raise ValueError(f"{name} has shape {dataset.shape} and type {dataset.dtype}")
        array: _Array = dataset[()]
        return array

    def __enter__(self) -> TrainerFile:
        """Return the file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Convert exceptions of h5py to a StreamError that names the file."""
        try:
            yield
        except DAMAGED as error:
            raise StreamError(
                f"Cannot resume from the checkpoint: {self.path} cannot be read: {as_line(error)}. Remove the "
                "checkpoint's folder, and resume from the one before."
            ) from None

    def check_belongs(self, trainer: int, first: TrainerFile) -> None:
        """Raise StreamError unless this is the trainer's file, and of the same checkpoint as the `first` file."""
        with self.readable():
            mine = (self.head.trainer, self.head.trainers, self.head.simulations, len(self.ledger["steps"]))
            if mine != (trainer, *(first.head.trainers, first.head.simulations, len(first.ledger["steps"]))):
                raise ValueError(f"it does not belong to {first.path.name}")

    def check(self, plan: Plan) -> None:
        """Raise StreamError unless the samples have the fields, parameters and simulations of a plan."""
        head, count = self.head, plan.simulations + plan.validation
        with self.readable():
            shapes = {name: self._dataset(f"fields/{name}") for name in self._file["fields"]}
            found = {name: (dataset_dtype(dataset), dataset.shape) for name, dataset in shapes.items()}
            of_samples = {name: self._dataset(name) for name in ("parameters", "time")}
            for name, dataset in of_samples.items():
                if dataset.shape[:1] != (self._rows,):
                    raise ValueError(f"{name} has shape {dataset.shape}, but there are {self._rows} steps")
            if of_samples["parameters"].ndim != 2 or {of_samples[n].dtype.str for n in ("parameters", "time")} != {
                "<f8"
            }:
                raise ValueError("parameters or time has a wrong shape or type")
            parameters = of_samples["parameters"].shape[1]
        if (
            set(self.numbers) != set(plan.numbers)
            or found
            != {field.name: (field.dtype, _shape(field, self._rows, self.numbers)) for field in plan.step_fields}
            or not self._has_constants(plan)
        ):
            what = "other fields"
        elif parameters != len(plan.parameters):
            what = f"{parameters} parameters instead of {len(plan.parameters)}"
        elif head.simulations != plan.simulations or len(self.ledger["steps"]) != count:
            what = f"{head.simulations} simulations and {len(self.ledger['steps']) - head.simulations} for validation"
        elif head.samples != samples_of(plan):
            what = f"samples with another window, stride or run, {head.samples} instead of {samples_of(plan)}"
        elif head.policy != plan.policy:
            what = f"buffer.policy {head.policy} instead of {plan.policy}"
        else:
            return
        raise StreamError(
            f"Cannot resume from the checkpoint: {self.path} has {what}. Use the job file that it was made with."
        )

    def rows(self, name: str, first: int, last: int) -> _Array:
        """Read rows first to last - 1 of a dataset."""
        with self.readable():
            rows: _Array = valid(self._file[name][first:last])
        return rows

    def fields(self, field: Field, first: int, chosen: NDArray[np.int64]) -> _Array:
        """Read the values of a field in the rows `first + chosen`, ascending, concatenated."""
        last = first + int(chosen[-1]) + 1
        if not field.length:
            return self.rows(f"fields/{field.name}", first, last)[chosen]
        sizes = self.numbers[field.length][:last] * field.row
        begin = int(sizes[:first].sum())
        values = self.rows(f"fields/{field.name}", begin, int(sizes.sum()))
        if len(chosen) == last - first:
            return values
        starts = np.cumsum(sizes[first:]) - sizes[first:]
        parts = [values[starts[row] : starts[row] + sizes[first + row]] for row in chosen.tolist()]
        joined: _Array = np.concatenate(parts)
        return joined

    def state(self, mate: int = 0) -> dict[str, Saved]:
        """Read the states of the registered objects, or of a mate's; of states in parts only the index."""
        of = of_mate(mate)
        with self.readable():
            names, indices = list(self._file.get(f"{of}state", ())), set(self._file.get(f"{of}sharded", ()))
            return {
                name: Saved(b"", self._bytes_of(f"{of}sharded/{name}"))
                if name in indices
                else Saved(self._bytes_of(f"{of}state/{name}"))
                for name in names
            }

    def _bytes_of(self, name: str) -> bytes:
        return bytes(self._dataset(name)[()].tobytes())
