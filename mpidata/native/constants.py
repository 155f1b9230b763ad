"""Numbers and names that C defines and Python uses, under their names in C without MPIDATA_.

They are read from libmpidata_carried, which needs no MPI, when the first one is used. Therefore write `constants.END`:
importing the name itself would load the library at once.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from ctypes import c_char_p, c_int64
from typing import TYPE_CHECKING, NamedTuple

from mpidata.errors import LibraryError
from mpidata.native.installation import folders

__all__ = ["Constant", "Dtype", "open_carried", "table"]

# mpidata.h
SUCCESS: int
END: int
ERR_ORDER: int
ERR_ARGUMENT: int
ERR_DTYPE: int
ERR_AGAIN: int
ERR_DIED: int
ERR_DEVICE: int
MEET: int
CANCELLED: int
CHECKPOINT: int
MAX_NDIM: int
MAX_TEXT: int

# plan_text.h
NAME_MAX: int
ITEM_MAX: int
ROLE_SOLVER: int
ROLE_LOADER: int
ROLE_SERVER: int
ROLE_INFERENCE: int
ROLE_LEARNER: int
ROLE_MATE: int
ROLES: tuple[str, ...]
DTYPES: Mapping[str, Dtype]
NO_STATISTICS: int
WHOLE_FIELD: int

# description.h
QUESTION_MAGIC: int
PARCEL_QUESTION: int

# convert.h
CONVERSIONS: Mapping[str, tuple[str, ...]]

# messages.h
PUBLISHED_NEWER: int
EVENT_NEXT: int
EVENT_FINALIZED: int
EVENT_HELD: int
EVENT_STATUS: int
EVENT_REPORT: int
EVENT_STOP: int
EVENT_GOODBYE: int
EVENT_ERROR: int
EVENT_CHECKPOINT_WANTED: int
EVENT_CHECKPOINT_WRITTEN: int
EVENT_DIED: int
EVENT_RECORD_STOPPED: int
EVENT_LOSSES: int
EVENT_READY: int
ANSWER_READY: int
ANSWER_BUSY: int
ANSWER_JOINED: int
ANSWER_FAILED: int
EVENT_LACKS: int
EVENT_ADOPTED: int
EVENT_CANCEL: int
GIVEN_UP: int
TRY_FAILED: int
WRITE_FAILED: int
LOOP_OVER: int

# wire.h, copy.h, arena.h
PIECE_SMALL: int
BLOCK_SMALL: int
ALONG_MAX: int
BLOCK_ANYWHERE: int
BUNDLE_MAX: int
BUNDLE_WORTH: int
BLOCKS_MAX: int
BOUNDARY: int
PAST_CACHE_WORTH: int
COPY_LARGE: int
CACHE_UNKNOWN: int
HUGE_PAGE: int
LARGE: int

# structures.h
PLACE_BUFFER: int
PLACE_WAITING: int
PLACE_RETIRED: int
PLACE_VALIDATION: int
PLACE_NONE: int
LOADER_JOINED: int
LOADER_RETIRES: int

# deadlines.h
AFTER_ERROR_MS: int

# run_files.h
RUN_PLAN: str
RUN_CASE: str
RUN_EXITS: str
RUN_ALIVE: str
VANISHED: str
RUN_LOGS: str
RUN_IDLE: str
RUN_HOSTS: str
RUN_JOURNAL: str
RUN_OVER: str
RUN_SUMMARY: str
RUN_GIVEN_UP: str
RUN_WAITING: str
JOINS: str
TRAINS: str
CARRIED_MARK: str


class Dtype(NamedTuple):
    """A dtype of fields: its number in C, NumPy's letter for its kind, its size, and whether it has statistics."""

    number: int
    kind: str
    size: int
    has_statistics: bool


class Constant(NamedTuple):
    """A row of C's table, `mpidata_constant` of constants.h; for a field of a structure: kind, offset and bytes."""

    name: str
    text: str
    number: int
    bytes: int


class _Row(ctypes.Structure):
    _fields_ = [("group", c_char_p), ("name", c_char_p), ("text", c_char_p), ("number", c_int64), ("bytes", c_int64)]


@functools.cache
def open_carried() -> ctypes.CDLL:
    """Load libmpidata_carried; returns the same object on every call.

    Raises
    ------
    LibraryError
        The library is missing.
    """
    path = folders().lib / "libmpidata_carried.so.0"
    if not path.is_file():
        raise LibraryError(
            f"libmpidata_carried is not built: there is no {path}. Run `pip install .` in the source tree."
        )
    return ctypes.CDLL(os.fspath(path))


@functools.cache
def table() -> Mapping[str, Sequence[Constant]]:
    """Return C's table by group: `status`, `number`, `text`, those of dtypes, and a group for each structure.

    Raises
    ------
    LibraryError
        The library is missing, or of another version of mpidata.
    """
    library = open_carried()
    try:
        function = library.mpidata_constants
    except AttributeError:
        raise LibraryError(
            f"{library._name} is of another version: it has no function mpidata_constants. Run `pip install .` in the "
            "source tree."
        ) from None
    function.argtypes, function.restype = [], ctypes.POINTER(_Row)
    groups: dict[str, list[Constant]] = {}
    for row in itertools.takewhile(lambda row: row.group, function()):
        constant = Constant(row.name.decode(), (row.text or b"").decode(), row.number, row.bytes)
        groups.setdefault(row.group.decode(), []).append(constant)
    return groups


if not TYPE_CHECKING:  # so that type checkers report names that are not declared above

    def __getattr__(name: str) -> object:
        """Read the table when the first constant is used; then all are plain attributes."""
        if not name.isupper():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        constants = {constant.name: constant.number for constant in (*table()["status"], *table()["number"])}
        constants |= {constant.name: constant.text for constant in table()["text"]}
        possible = {each.name: bool(each.number) for each in table()["has_statistics"]}
        constants["DTYPES"] = {
            each.name: Dtype(each.number, each.text, each.bytes, possible[each.name]) for each in table()["dtype"]
        }
        conversions: dict[str, tuple[str, ...]] = {}
        for each in table()["conversion"]:
            conversions[each.text] = (*conversions.get(each.text, ()), each.name)
        constants["CONVERSIONS"] = conversions
        roles = [constant.name for constant in table()["number"] if constant.name.startswith("ROLE_")]
        constants["ROLES"] = tuple(role.removeprefix("ROLE_").lower() for role in sorted(roles, key=constants.get))
        globals().update(constants)
        if name not in constants:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return constants[name]
