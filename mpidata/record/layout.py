"""The layout of a record's files.

A file holds `fields/<name>` (n, *shape), `parameters` (n, p), `time`, `step`, `simulation` and `validation` (n); row i
of each belongs to one sample. Rows whose simulation is negative are empty: room that was not used, or a sample whose
writing was cut short. The root has the attributes `format`, `version` and `header`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.plan import Field, Plan

__all__ = ["EMPTY", "Header", "files_in", "open_file", "read_index"]

FORMAT = "mpidata-record"
VERSION = 1
EMPTY = -1
"""Simulation of a row without a sample."""


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file says about itself: the run it belongs to, and what its samples hold."""

    run: str
    trainer: int
    every: int
    parameters: tuple[str, ...]
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, plan: Plan, trainer: int) -> Header:
        """Make that of a trainer's file."""
        return cls(os.fspath(plan.run), trainer, plan.record_every, plan.parameters, plan.fields)

    @classmethod
    def read(cls, file: h5py.File, path: Path) -> Header:
        """Read that of an open file; raises MpidataError if it is not one of a record."""
        if file.attrs.get("format") != FORMAT:
            raise MpidataError(f"{path} is no file of a record. Give the folder that `record.path` names.")
        if file.attrs["version"] != VERSION:
            raise MpidataError(
                f"{path} is a record of version {file.attrs['version']}, not {VERSION}. Read it with the version of "
                "mpidata that wrote it."
            )
        try:
            data = json.loads(file.attrs["header"])
            fields = tuple(Field(f["name"], f["dtype"], tuple(f["shape"])) for f in data.pop("fields"))
            header = cls(**(data | {"parameters": tuple(data["parameters"]), "fields": fields}))
            for field in fields:
                dataset = file["fields"][field.name]
                if dataset.shape[1:] != field.shape or dataset.dtype != np.dtype(field.dtype):
                    raise ValueError(f"field {field.name} is not what the header says")
        except (KeyError, TypeError, ValueError) as error:
            raise MpidataError(f"{path} is damaged: {error}. Remove it, or restore it from a copy.") from None
        return header

    def write(self, file: h5py.File) -> None:
        """Add it to a new file."""
        file.attrs["format"] = FORMAT
        file.attrs["version"] = VERSION
        file.attrs["header"] = json.dumps(dataclasses.asdict(self))

    def difference(self, other: Header) -> str | None:
        """Say in what the samples differ from the other's; None where they do not."""
        if self.parameters != other.parameters:
            return f"parameters {', '.join(self.parameters)} and not {', '.join(other.parameters)}"
        for mine, theirs in zip(self.fields, other.fields, strict=False):
            if mine != theirs:
                return f"field {_describe(mine)} and not {_describe(theirs)}"
        if len(self.fields) != len(other.fields):
            return f"{len(self.fields)} fields and not {len(other.fields)}"
        return None


def _describe(field: Field) -> str:
    return f"{field.name} ({field.dtype}, {list(field.shape)})"


def files_in(folder: Path) -> list[Path]:
    """Files of a record, by name; none where there is no folder."""
    return sorted(folder.glob("*.h5"))


def open_file(path: Path) -> h5py.File:
    """Open a file to read it, also one that is still being written or whose writer was killed.

    Raises
    ------
    MpidataError
        It cannot be read.
    """
    # Without a chunk cache, HDF5 reads a sample and not the whole chunk that it lies in.
    try:
        try:
            return h5py.File(path, "r", rdcc_nbytes=0)
        except OSError as error:
            if "already open for write" not in str(error):
                raise
            # Only here, as HDF5 then tries again and again to read what is damaged.
            return h5py.File(path, "r", libver="latest", swmr=True, rdcc_nbytes=0)
    except (OSError, ValueError) as error:
        raise MpidataError(f"{path} cannot be read as HDF5: {error}. Remove it, or restore it from a copy.") from None


def read_index(file: h5py.File, path: Path) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Read the columns `simulation`, `step`, `time` and `validation`, whole; the first has EMPTY rows.

    Raises
    ------
    MpidataError
        The file lacks one of them, or it cannot be read.
    """
    rows = -1
    for name, dtype in (("simulation", np.int64), ("step", np.int64), ("time", np.float64), ("validation", np.uint8)):
        try:
            column = np.asarray(file[name][: None if rows < 0 else rows], dtype)
        except (KeyError, OSError, ValueError, TypeError) as error:
            raise MpidataError(f"{path} is damaged: {error}. Remove it, or restore it from a copy.") from None
        if rows < 0:
            rows = len(column)
        if column.shape != (rows,):
            raise MpidataError(f"{path} is damaged: {name} has {len(column)} of {rows} rows. Restore it from a copy.")
        yield name, column
