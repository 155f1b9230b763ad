"""The layout of a record's files.

A file holds `fields/<name>` (n, *shape), `parameters` (n, p), `time`, `step`, `simulation` and `validation` (n); row i
of each belongs to one sample. Rows whose simulation is negative are empty: unused room, or a sample whose writing was
interrupted. The root has the attributes `format`, `version` and `header`. For a parameter that is a text, `parameters`
has the position of the text in its list in the header. A field of bfloat16 is stored as uint16, with the attribute
`dtype`, "bfloat16".

If samples have lengths, `lengths/<name>` (n) has them. `fields/<name>` of a field with a length has the values of all
samples, concatenated in the order of the rows: (sum, *rest) if the dimension that varies is the first; otherwise the
elements of the samples, each in C order of its own shape, (elements).

With `weights` in the header the last column of `parameters` is the weight of the sample.

`given/<name>` (n) of an optional field is 1 if it was put; otherwise it is 0, and the field's values are zeros.

If fields are sent once per simulation, `constants/of` (n) has for each sample the row of its constants in
`constants/simulation`, `constants/try` (m), `constants/lengths/<name>` (m) and `constants/fields/<name>`, which has the
layout of a field of samples.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.dtypes import dataset_dtype
from mpidata.errors import DAMAGED, MpidataError, as_line
from mpidata.native import constants
from mpidata.run.plan import Field, Plan

__all__ = [
    "EMPTY",
    "Header",
    "column_of",
    "files_in",
    "open_file",
    "read_constants_of",
    "read_ends",
    "read_given",
    "read_index",
]

FORMAT = "mpidata-record"
# Later ones only if samples have numbers, constants or weights, because earlier versions of mpidata cannot read these.
VERSION, WITH_NUMBERS, WITH_CONSTANTS, WITH_WEIGHTS = 1, 2, 3, 4
EMPTY = -1
"""Simulation of a row without a sample."""
_MOST_ROWS = 1 << 62
_MOST_STEPS = 1 << 28  # a larger step means a damaged file; each step needs a bit of memory


@dataclasses.dataclass(frozen=True)
class Header:
    """The header of a file: the run that it belongs to, and the contents of its samples."""

    run: str
    trainer: int
    every: int
    parameters: tuple[str, ...]
    fields: tuple[Field, ...]
    texts: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    weights: bool = False

    @classmethod
    def of(cls, plan: Plan, trainer: int) -> Header:
        """Return the header of a trainer's file."""
        names = (plan.parameters, plan.fields, plan.texts, bool(plan.weights))
        return cls(os.fspath(plan.run), trainer, plan.record_every, *names)

    @classmethod
    def read(cls, file: h5py.File, path: Path) -> Header:
        """Read the header of an open file; raises MpidataError if it is not a file of a record."""
        with _damaged(path):
            kind, version = file.attrs.get("format"), file.attrs.get("version")
            if not isinstance(kind, str) or kind != FORMAT:
                raise MpidataError(f"{path} is not a file of a record. Give the folder that `record.path` names.")
            if not isinstance(version, np.integer) or not VERSION <= version <= WITH_WEIGHTS:
                found = version if isinstance(version, np.integer) else "unknown"
                raise MpidataError(
                    f"{path} is a record of version {found}, not {WITH_WEIGHTS}. Read it with the version of mpidata "
                    "that wrote it."
                )
            data = json.loads(file.attrs["header"])
            fields = tuple(Field(**(f | {"shape": tuple(f["shape"])})) for f in data.pop("fields"))
            texts = {name: tuple(texts) for name, texts in dict(data.pop("texts", {})).items()}
            header = cls(**(data | {"parameters": tuple(data["parameters"]), "fields": fields, "texts": texts}))
            header._check()
            columns = {header.place_of(f): (column_of(f)[0], f.dtype) for f in fields}
            columns |= {name: ((), dtype) for name, dtype in header.number_columns.items()}
            if header.parameters:
                columns["parameters"] = ((len(header.parameters),), "float64")
            for name, (shape, dtype) in columns.items():
                dataset = _dataset(file, name)
                if dataset.shape[1:] != shape or dataset_dtype(dataset) != dtype:
                    raise ValueError(f"{name} does not match the header")
        return header

    def _check(self) -> None:
        names = (self.run, *self.parameters, *(field.name for field in self.fields))
        names = (*names, *self.texts, *(text for texts in self.texts.values() for text in texts))
        names = (*names, *self.numbers)
        extents = [extent for field in self.fields for extent in field.shape if not extent or extent != field.length]
        sizes = [extent for extent in extents if type(extent) is int]
        bases = [field.base for field in self.fields]
        numbers = len(sizes) == len(extents) and all(type(n) is int for n in (self.trainer, self.every, *bases))
        flags = [flag for field in self.fields for flag in (field.optional, field.per_simulation)]
        numbers &= all(type(flag) is bool for flag in (*flags, self.weights)) and len(self.parameters) >= self.weights
        if not numbers or not all(isinstance(name, str) and name for name in names) or self.trainer < 0:
            raise ValueError("its header is invalid")
        if (
            self.every < 1
            or min(sizes, default=1) < 1
            or not {field.dtype for field in self.fields} <= set(constants.DTYPES)
            or not {field.index for field in self.fields} <= {"", *self.lengths}
            or not {field.index for field in self.constants} <= {"", *self.constant_lengths}
        ):
            raise ValueError("its header is invalid")

    def write(self, file: h5py.File) -> None:
        """Add the header to a new file."""
        file.attrs["format"] = FORMAT
        file.attrs["version"] = self._version
        fields: list[dict[str, Any]] = [{"name": f.name, "dtype": f.dtype, "shape": f.shape} for f in self.fields]
        for entry, field in zip(fields, self.fields, strict=True):
            entry.update({"index": field.index, "base": field.base} if field.index else {})
            entry.update({"optional": True} if field.optional else {})
            entry.update({"per_simulation": True} if field.per_simulation else {})
        data = dataclasses.asdict(self) | {"fields": fields}
        if not self.texts:  # earlier versions do not know these
            del data["texts"]
        if not self.weights:
            del data["weights"]
        file.attrs["header"] = json.dumps(data)

    @property
    def _version(self) -> int:
        if self.weights:
            return WITH_WEIGHTS
        return WITH_CONSTANTS if self.constants else WITH_NUMBERS if self.numbers else VERSION

    @staticmethod
    def place_of(field: Field) -> str:
        """Name of the dataset with the values of a field."""
        return f"constants/fields/{field.name}" if field.per_simulation else f"fields/{field.name}"

    @property
    def constants(self) -> tuple[Field, ...]:
        """The fields that are sent once per simulation."""
        return tuple(field for field in self.fields if field.per_simulation)

    @property
    def constant_lengths(self) -> tuple[str, ...]:
        """Lengths of the constants, in the order of their first use."""
        return tuple(dict.fromkeys(field.length for field in self.constants if field.length))

    @property
    def lengths(self) -> tuple[str, ...]:
        """Lengths of samples, in the order of their first use by fields, as in a plan."""
        return tuple(dict.fromkeys(field.length for field in self.fields if field.length))

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of a sample's numbers, as in a plan: lengths, then for each optional field whether it was put."""
        return (*self.lengths, *(f"{field.name}_given" for field in self.fields if field.optional))

    @property
    def number_columns(self) -> dict[str, str]:
        """Names and dtypes of the datasets that have the numbers, in their order."""
        given = {f"given/{field.name}": "uint8" for field in self.fields if field.optional}
        return {f"lengths/{name}": "int64" for name in self.lengths} | given

    def difference(self, other: Header) -> str | None:
        """Describe how the samples differ from those of the other header; None if they do not."""
        if self.parameters != other.parameters:
            return f"parameters {', '.join(self.parameters)} and not {', '.join(other.parameters)}"
        if self.weights != other.weights:
            return f"parameters.weights {self.weights} and not {other.weights}"
        if self.texts != other.texts:
            return f"texts of parameters {_texts(self)} and not {_texts(other)}"
        for mine, theirs in zip(self.fields, other.fields, strict=False):
            if mine != theirs:
                return f"field {_describe(mine)} and not {_describe(theirs)}"
        if len(self.fields) != len(other.fields):
            return f"{len(self.fields)} fields and not {len(other.fields)}"
        return None


@contextlib.contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """Convert exceptions of h5py to an MpidataError that names the file."""
    try:
        yield
    except DAMAGED as error:
        raise MpidataError(f"{path} is damaged: {as_line(error)}. Remove it, or restore it from a copy.") from None


def _dataset(file: h5py.File, name: str) -> h5py.Dataset:
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or not isinstance(dataset.shape, tuple) or not dataset.shape:
        raise ValueError(f"{name} is not a dataset of samples")
    return dataset


def _texts(header: Header) -> str:
    return "; ".join(f"{name}: {', '.join(texts)}" for name, texts in header.texts.items()) or "none"


def _describe(field: Field) -> str:
    index = f", index {field.index} from {field.base}" if field.index else ""
    more = (", optional" if field.optional else "") + (", per simulation" if field.per_simulation else "")
    return f"{field.name} ({field.dtype}, {list(field.shape)}{index}{more})"


def column_of(field: Field) -> tuple[tuple[int, ...], int]:
    """Return the shape of a row of a field's dataset, and the number of rows for each index of its length.

    A field without a length has a row for each sample.
    """
    first, *rest = field.shape or ("",)
    if not field.length:
        return field.extents(), 1
    return (field.extents({field.length: 1})[1:], 1) if first == field.length else ((), field.row)


def files_in(folder: Path) -> list[Path]:
    """Return the files of a record, by name; none if there is no folder."""
    return sorted(folder.glob("*.h5")) if os.path.isdir(folder) else []


def open_file(path: Path) -> h5py.File:
    """Open a file to read it, also one that is still being written or whose writer was killed.

    Raises
    ------
    MpidataError
        It cannot be read.
    """
    # Without a chunk cache, HDF5 reads a sample and not the whole chunk around it.
    try:
        try:
            return h5py.File(path, "r", rdcc_nbytes=0)
        except OSError as error:
            if "already open for write" not in str(error):
                raise
            # Only here, because HDF5 then reads damaged data again and again.
            return h5py.File(path, "r", libver="latest", swmr=True, rdcc_nbytes=0)
    except DAMAGED as error:
        raise MpidataError(f"{path} cannot be read as HDF5: {error}. Remove it, or restore it from a copy.") from None


def read_ends(
    file: h5py.File, path: Path, header: Header, filled: npt.NDArray[np.bool_], *, constants: bool = False
) -> dict[str, npt.NDArray[np.int64]]:
    """Read the ends of the samples in the fields of each length, (rows + 1) from 0; `filled`: which rows have a sample.

    With `constants`, the ends of the constants in their fields.

    Raises
    ------
    MpidataError
        There are too few lengths or values, or the file cannot be read.
    """
    ends = {}
    fields = [field for field in header.fields if field.length and field.per_simulation == constants]
    names = dict.fromkeys(field.length for field in fields) if constants else header.lengths
    with _damaged(path):
        sizes = {field: _dataset(file, header.place_of(field)).shape[0] // column_of(field)[1] for field in fields}
        for name in names:
            place = f"constants/lengths/{name}" if constants else f"lengths/{name}"
            most = min((size for field, size in sizes.items() if field.length == name), default=_MOST_ROWS)
            lengths = _dataset(file, place)[: len(filled)]
            if lengths.shape != filled.shape or np.any((lengths[filled] < 0) | (lengths[filled] > most)):
                raise ValueError(f"{place} makes no sense")
            ends[name] = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths * filled)])
            if ends[name].min() < 0 or ends[name].max() > most:  # below 0: an int64 has overflowed
                raise ValueError(f"{place} has more than the fields")
    return ends


def read_constants_of(
    file: h5py.File, path: Path, simulation: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Read the row of the constants for each row, of these simulations, and simulation and try of all constants.

    Raises
    ------
    MpidataError
        A row has no constants, or those of another simulation; or the file cannot be read.
    """
    with _damaged(path):
        theirs, of, tries = (_dataset(file, f"constants/{name}")[()] for name in ("simulation", "of", "try"))
        of, tries, filled = of[: len(simulation)], tries[: len(theirs)], simulation >= 0
        if of.shape != simulation.shape or tries.shape != theirs.shape:
            raise ValueError("constants/of or constants/try has too few rows")
        wanted = of[filled]
        if np.any((wanted < 0) | (wanted >= len(theirs))) or np.any(theirs[wanted] != simulation[filled]):
            raise ValueError("constants/of refers to missing constants, or to those of another simulation")
    return of, theirs, tries


def read_given(file: h5py.File, path: Path, header: Header, rows: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Read for each optional field which of the first `rows` rows have it, by the name in a sample.

    Raises
    ------
    MpidataError
        There are too few rows, or the file cannot be read.
    """
    given = {}
    for field in header.fields:
        if field.optional:
            with _damaged(path):
                column = np.asarray(_dataset(file, f"given/{field.name}")[:rows])
                if column.shape != (rows,):
                    raise ValueError(f"given/{field.name} has {len(column)} of {rows} rows")
            given[f"{field.name}_given"] = column != 0
    return given


def read_index(file: h5py.File, path: Path) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Read the columns `simulation`, `step`, `time` and `validation`, whole; the first has EMPTY rows.

    Raises
    ------
    MpidataError
        A column is missing, or the file cannot be read.
    """
    rows, filled = -1, np.zeros(0, bool)
    for name, dtype in (("simulation", np.int64), ("step", np.int64), ("time", np.float64), ("validation", np.uint8)):
        with _damaged(path):
            dataset = _dataset(file, name)
            if dataset.ndim != 1 or dataset.dtype != dtype:
                raise ValueError(f"{name} has shape {dataset.shape} and type {dataset.dtype}")
            if dataset.size * dataset.dtype.itemsize > os.stat(path).st_size:
                raise ValueError(f"{name} is larger than the file")
            column = np.asarray(dataset[: None if rows < 0 else rows])
            if rows < 0:
                rows = len(column)
                filled = column >= 0
            if column.shape != (rows,):
                raise ValueError(f"{name} has {len(column)} of {rows} rows")
            if name == "step" and np.any((column[filled] < 0) | (column[filled] > _MOST_STEPS)):
                raise ValueError("step makes no sense")
        yield name, column
