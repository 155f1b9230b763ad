"""Constants, the fields that are sent once per simulation, in the file of a trainer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpidata.native.library import Library, check
from mpidata.native.structures import array_at, look
from mpidata.run.plan import Field, Plan

if TYPE_CHECKING:
    from mpidata.checkpoint.trainer_file import TrainerFile

__all__ = ["RestoredConstants", "SnapshotConstants", "extents"]


def extents(plan: Plan, field: Field, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of elements of a field in constants with these numbers, (n, n_numbers); 0 if it was not put."""
    names = list(plan.numbers)
    rows = np.ones(len(numbers), np.int64)
    if field.length:
        rows = np.maximum(0, numbers[:, names.index(field.length)])
    if field.optional:
        rows = rows * (numbers[:, names.index(f"{field.name}_given")] != 0)
    return rows * field.row


class SnapshotConstants:
    """The constants of the steps of a snapshot, held until `release`.

    Parameters
    ----------
    plan : Plan
        Of the job.
    library : Library
        With a snapshot that was just taken.
    steps : int
        Of the snapshot.
    """

    def __init__(self, plan: Plan, library: Library, steps: int) -> None:
        self._plan, self._library = plan, library
        addresses, found = (ctypes.c_void_p * max(1, steps))(), ctypes.c_int64()
        of = np.empty(steps, np.int64)
        check(library, library.mpidata_trainer_snapshot_constants(addresses, ctypes.byref(found), of.ctypes.data))
        self._addresses = addresses[: found.value]
        self._held = [look(library, address or 0, len(plan.fields), len(plan.numbers)) for address in self._addresses]
        self._numbers = np.array([held.numbers for held in self._held], np.int64).reshape(
            len(self._held), len(plan.numbers)
        )
        self.arrays: dict[str, NDArray[Any]] = {
            "constants/of": of,
            "constants/simulation": np.array([held.simulation for held in self._held], np.int64),
            "constants/try": np.array([held.by_try for held in self._held], np.int64),
            "constants/numbers": self._numbers,
        }

    def values(self) -> dict[str, list[NDArray[Any]]]:
        """Return views of the values for each dataset, in order; valid until `release`."""
        views: dict[str, list[NDArray[Any]]] = {}
        for number, field in enumerate(self._plan.fields):
            if field.per_simulation:
                sizes = extents(self._plan, field, self._numbers).tolist()
                of_field = [(held.values[number], size) for held, size in zip(self._held, sizes, strict=True)]
                views[f"constants/fields/{field.name}"] = [
                    array_at(at, n, field.dtype) for at, n in of_field if at and n
                ]
        return views

    def release(self) -> None:
        """Release the constants."""
        for address in self._addresses:
            self._library.mpidata_trainer_constants_release(address)
        self._addresses = []


class RestoredConstants:
    """Constants that were restored in a trainer, each once, and held until `release`."""

    def __init__(self, plan: Plan, library: Library) -> None:
        self._plan, self._library = plan, library
        self._addresses: dict[tuple[int, int], int] = {}

    def addresses(self, file: TrainerFile, rows: NDArray[np.int64]) -> NDArray[np.uintp]:
        """Return the addresses of the constants of these rows of a file."""
        of = file.constants["of"][rows].tolist()
        return np.array([self._address(file, number) for number in of], np.uintp)

    def _address(self, file: TrainerFile, number: int) -> int:
        key = id(file), number
        if key not in self._addresses:
            self._addresses[key] = self._made(file, number)
        return self._addresses[key]

    def _made(self, file: TrainerFile, number: int) -> int:
        library, made = self._library, ctypes.c_void_p()
        arrays = list(self._values(file, number))
        pointers = (ctypes.c_void_p * len(arrays))(*(None if array is None else array.ctypes.data for array in arrays))
        numbers = np.ascontiguousarray(file.constants["numbers"][number])
        key = (int(file.constants["simulation"][number]), int(file.constants["try"][number]))
        call = library.mpidata_trainer_restore_constants
        check(library, call(*key, pointers, numbers.ctypes.data, ctypes.byref(made)))
        return made.value or 0

    def _values(self, file: TrainerFile, number: int) -> Iterator[NDArray[Any] | None]:
        for field in self._plan.fields:
            if not field.per_simulation:
                yield None
                continue
            sizes = extents(self._plan, field, file.constants["numbers"])
            end = int(sizes[: number + 1].sum())
            values = file.rows(f"constants/fields/{field.name}", end - int(sizes[number]), end)
            yield np.ascontiguousarray(values)

    def release(self) -> None:
        """Release the constants, which the samples hold now."""
        for address in self._addresses.values():
            self._library.mpidata_trainer_constants_release(address)
        self._addresses = {}
