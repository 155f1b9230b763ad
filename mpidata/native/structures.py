"""Structures that C and Python share, with their fields as defined in C; each is created when it is first used.

Therefore write `structures.Statistics`: importing the name itself would load libmpidata_carried at once.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mpidata.dtypes import numpy_dtype
from mpidata.native import constants
from mpidata.native.constants import Constant, table
from mpidata.native.library import Library, check

__all__ = ["Held", "PublishedPlace", "array_at", "described_in", "look", "structure"]

if TYPE_CHECKING:

    class Statistics(ctypes.Structure):
        """`mpidata_statistics`."""

    class Snapshot(ctypes.Structure):
        """`mpidata_snapshot`."""

    class RecordFigures(ctypes.Structure):
        """`mpidata_record_figures`."""

    class Taken(ctypes.Structure):
        """`mpidata_taken`."""

    class Array(ctypes.Structure):
        """`mpidata_array`."""

    class Description(ctypes.Structure):
        """`mpidata_description`."""

    class Described(ctypes.Structure):
        """`mpidata_described`."""

    class Contents(ctypes.Structure):
        """`mpidata_contents`."""

    class PublishedArray(ctypes.Structure):
        """`mpidata_published_array`."""

    class RawEvent(ctypes.Structure):
        """`mpidata_event`."""

        text: ClassVar[Any]


LOSSES: np.dtype[np.void]
"""`mpidata_losses`, of one simulation, for arrays."""

_IN_C = {
    "Statistics": "mpidata_statistics",
    "Snapshot": "mpidata_snapshot",
    "RecordFigures": "mpidata_record_figures",
    "Taken": "mpidata_taken",
    "RawEvent": "mpidata_event",
    "Array": "mpidata_array",
    "Description": "mpidata_description",
    "Described": "mpidata_described",
    "Contents": "mpidata_contents",
    "PublishedArray": "mpidata_published_array",
}
_KINDS: dict[str, Any] = {
    "i": ctypes.c_int32,
    "I": ctypes.c_uint32,
    "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
    "d": ctypes.c_double,
    "c": ctypes.c_char,
    "P": ctypes.c_void_p,
    "*q": ctypes.POINTER(ctypes.c_int64),
}


@functools.cache
def structure(name: str) -> type[ctypes.Structure]:
    """Return a structure of C.

    Parameters
    ----------
    name : str
        In C. Fields `a.x` and `b.y` are in a union of structures `a` and `b`; the name of the union is omitted.

    Returns
    -------
    type of ctypes.Structure
    """
    whole, *fields = table()[name]
    return _made(fields, 0, whole.bytes)


def _made(fields: list[Constant], start: int, size: int = 0) -> type[ctypes.Structure]:
    listed: dict[str, Any] = {}
    union: dict[str, list[Constant]] = {}
    for field in fields:
        first, _, within = field.name.partition(".")
        listed["content" if within else first] = None if within else _kind_of(field)
        if within:
            union.setdefault(first, []).append(field._replace(name=within))
    if union:
        begin = min(part[0].number for part in union.values())
        parts = [(name, _made(part, begin)) for name, part in union.items()]
        listed["content"] = type("Content", (ctypes.Union,), {"_fields_": parts})
    body = {"_anonymous_": ("content",) if union else (), "_fields_": list(listed.items())}
    made = type("Structure", (ctypes.Structure,), body)
    offsets = {getattr(made, field.name).offset == field.number - start for field in fields if field.name in listed}
    if offsets != {True} or size not in (0, ctypes.sizeof(made)):
        raise AssertionError(f"constants.c lacks a field of the structure of {', '.join(listed)}.")
    return made


def _kind_of(field: Constant) -> Any:
    kind = _KINDS.get(field.text) or structure(field.text)
    count = field.bytes // ctypes.sizeof(kind)
    return kind if count == 1 else kind * count


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Create the structure when it is first used."""
        if name in _IN_C:
            made = structure(_IN_C[name])
        elif name == "LOSSES":
            made = np.dtype(np.dtype(structure("mpidata_losses")).descr)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = made
        return made


class Held(NamedTuple):
    """The constants of a simulation's try: the address of each field (None: no values), and numbers as of a sample.

    A length that no constant has is -1.
    """

    simulation: int
    by_try: int
    values: list[int | None]
    numbers: npt.NDArray[np.int64]


def look(library: Library, address: int, n_fields: int, n_numbers: int) -> Held:
    """Return constants to which the caller has a reference; valid as long as the reference exists."""
    values, numbers = (ctypes.c_void_p * n_fields)(), np.zeros(n_numbers, np.int64)
    simulation, by_try = ctypes.c_int64(), ctypes.c_int64()
    results = (values, numbers.ctypes.data, ctypes.byref(simulation), ctypes.byref(by_try))
    check(library, library.mpidata_trainer_constants_look(address, *results))
    return Held(simulation.value, by_try.value, list(values), numbers)


def array_at(address: int, elements: int, dtype: str) -> npt.NDArray[Any]:
    """Return a view of at least one value of a field of this dtype, in the library's memory."""
    in_numpy = numpy_dtype(dtype)
    memory = (ctypes.c_char * (elements * in_numpy.itemsize)).from_address(address)
    array: npt.NDArray[Any] = np.frombuffer(memoryview(memory), in_numpy)
    return array


class PublishedPlace(NamedTuple):
    """A published array: its dtype by name, and the offset of its values in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    at: int


def described_in(contents: memoryview) -> Iterator[PublishedPlace]:
    """Yield the arrays of published contents, which libmpidata has checked, in order."""
    head, one = structure("mpidata_contents"), structure("mpidata_published_array")
    names = {dtype.number: name for name, dtype in constants.DTYPES.items()}
    count: int = head.from_buffer_copy(contents).n
    for array in (one * count).from_buffer_copy(contents, ctypes.sizeof(head)):
        yield PublishedPlace(array.name.decode(), names[array.dtype], tuple(array.shape[: array.ndim]), array.at)
