"""Constants, the fields that are sent once per simulation, in a record: each is written once per try."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import numpy.typing as npt
import torch

from mpidata.native.library import Library, check
from mpidata.native.structures import Held, array_at, look
from mpidata.record.layout import Header, read_constants_of, read_ends

if TYPE_CHECKING:
    from mpidata.record.file import RecordFile
    from mpidata.run.plan import Field, Plan

__all__ = ["ConstantsToRecord", "RecordedConstants"]


class ConstantsToRecord:
    """Constants of the samples that a recorder takes, each written with the first sample that has them.

    Parameters
    ----------
    plan : Plan
        Of a job with constants.
    library : Library
        Opened as a trainer.
    header : Header
        Of the file.
    """

    def __init__(self, plan: Plan, library: Library, header: Header) -> None:
        self._plan, self._library = plan, library
        self._fields = [(number, field) for number, field in enumerate(plan.fields) if field.per_simulation]
        self._lengths = [list(plan.numbers).index(name) for name in header.constant_lengths]
        self._written: dict[tuple[int, int], int] = {}  # by simulation and try, because an address may be reused

    def of_taken(self, count: int) -> npt.NDArray[np.uintp]:
        """Return the addresses of the constants of the samples taken; valid until the samples are released."""
        of = np.empty(count, np.uintp)
        check(self._library, self._library.mpidata_trainer_record_constants(of.ctypes.data))
        return of

    def write(self, file: RecordFile, of: npt.NDArray[np.uintp]) -> npt.NDArray[np.int64]:
        """Write the constants that are not yet in the file, and return the rows of all; raises OSError."""
        addresses, inverse = np.unique(of, return_inverse=True)
        rows = np.array([self._row(file, address) for address in addresses.tolist()], np.int64)
        return rows[inverse.reshape(-1)]

    def _row(self, file: RecordFile, address: int) -> int:
        held = look(self._library, address, len(self._plan.fields), len(self._plan.numbers))
        key = held.simulation, held.by_try
        if key not in self._written:
            lengths = np.maximum(0, held.numbers[self._lengths]).tolist()
            self._written[key] = file.append_constants(*key, lengths, [self._values(held, *of) for of in self._fields])
        return self._written[key]

    def _values(self, held: Held, number: int, field: Field) -> npt.NDArray[Any] | None:
        """Return a view of the values of a field; None: it was not put."""
        address, length = held.values[number], 1
        if field.length:
            length = int(held.numbers[list(self._plan.numbers).index(field.length)])
        return array_at(address, field.row * length, field.dtype) if address and length > 0 else None


class RecordedConstants:
    """Constants in a record's file.

    Parameters
    ----------
    file : h5py.File
        The file; the constants' values are read later.
    path : Path
        Its path.
    header : Header
        Its header.
    simulation : ndarray of int64, shape (rows,)
        Simulation of each row.

    Raises
    ------
    MpidataError
        The file is damaged.
    """

    def __init__(self, file: h5py.File, path: Path, header: Header, simulation: npt.NDArray[np.int64]) -> None:
        self._header = header
        self.of, theirs, self.tries = read_constants_of(file, path, simulation)
        self._ends = read_ends(file, path, header, theirs >= 0, constants=True)
        self._last: tuple[int, int, dict[str, torch.Tensor]] = (-1, -1, {})

    def read(
        self, file: h5py.File, number: int, read: Callable[[h5py.Dataset, Field, int, Any], torch.Tensor]
    ) -> Mapping[str, torch.Tensor]:
        """Return the constants of a row, by `read`, or from memory if they were the last ones read."""
        if self._last[:2] != (os.getpid(), number):
            fields = self._header.constants
            of_row = {f.name: read(file[Header.place_of(f)], f, number, self._ends) for f in fields}
            self._last = (os.getpid(), number, of_row)
        return self._last[2]

    def __getstate__(self) -> dict[str, Any]:
        """Omit the values in memory."""
        return {**self.__dict__, "_last": (-1, -1, {})}
