"""Messages between trainers and loaders about part files."""

from __future__ import annotations

import functools
import json
import pickle
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import torch

from mpidata.errors import StreamError, as_line
from mpidata.loading.blocks import Block
from mpidata.loading.columns import Choice
from mpidata.loading.formats.chunk import Kinds
from mpidata.loading.parcels import pack_exception, reraise
from mpidata.loading.parts import Part
from mpidata.native.item import item_of

__all__ = [
    "Counted",
    "Files",
    "Hold",
    "WANTED",
    "pack_error",
    "pack_files",
    "part_text",
    "raise_error",
    "unpack_files",
]

WANTED = struct.Struct("<QQQ")
"""Head of a request for rows: epoch, block, and number of ranges. The ranges of places in the block follow, first and
end, uint64, then the numbers of parts, uint32; none: all held."""

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class Files:
    """A dataset of part files for the loaders: arguments of FileDataset, and torch's default dtype in the trainer."""

    parts: tuple[Part, ...]
    columns: Choice
    transform: Callable[[dict[str, Any]], Any] | None
    reader: str | None
    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)


@dataclass(frozen=True)
class Counted:
    """The rows and columns of a part, as a loader found them.

    Attributes
    ----------
    rows : int
        Number of rows.
    kinds : dict of str or None
        Kind of values of each requested column; None if only the user's reader knows.
    contents : bytes
        A hash of the contents.
    """

    rows: int
    kinds: Kinds | None
    contents: bytes


@dataclass(frozen=True)
class Hold:
    """The parts of a block that a loader must hold.

    Attributes
    ----------
    block : Block
        The block.
    parts : tuple of int
        The loader's parts of the block.
    still : frozenset of (int, int)
        Epoch and number of all blocks that the trainer still needs, including this one.
    """

    block: Block
    parts: tuple[int, ...]
    still: frozenset[tuple[int, int]]


@functools.lru_cache(maxsize=1 << 16)
def part_text(part: Part) -> str:
    """Name a part for the report if a loader dies at it."""
    return item_of(f"part {part.path}")


def pack_files(files: Files) -> bytes:
    """Pickle a dataset, including objects of ``__main__``; raises StreamError if that is impossible."""
    try:
        pickled: bytes = cloudpickle.dumps(files, protocol=5)
    except Exception as error:  # a transform may raise anything here
        raise StreamError(
            "FileDataset: transform cannot be sent to the loaders, because it cannot be pickled: "
            f"{type(error).__name__}: {as_line(error)}. Open files and connections in its first call."
        ) from error
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)]).encode()
    return _HEAD.pack(len(path)) + path + pickled


def unpack_files(payload: memoryview) -> Files:
    """Return what `pack_files` packed; appends the trainer's ``sys.path``."""
    (length,) = _HEAD.unpack_from(payload)
    begin = _HEAD.size + length
    for entry in json.loads(bytes(payload[_HEAD.size : begin])):
        if entry not in sys.path:
            sys.path.append(entry)
    files: Files = pickle.loads(payload[begin:])
    return files


def pack_error(error: Exception, part: str = "part files") -> bytes:
    """Pickle the exception that is being handled: the message of a StreamError, others with their traceback."""
    if isinstance(error, StreamError):
        return pickle.dumps(str(error))
    return pack_exception(f"in a loader that reads {part}")


def raise_error(pickled: memoryview) -> None:
    """Raise the exception that `pack_error` packed."""
    error = pickle.loads(pickled)
    if isinstance(error, str):
        raise StreamError(error)
    reraise(error)
