"""What trainers and loaders tell each other about part files."""

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
"""A request for rows: epoch, block, and how many ranges of places in it follow, first and end, uint64. Then come the
numbers of parts, uint32; none: all held."""

_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class Files:
    """A dataset of part files, as its loaders know it: arguments of FileDataset, and torch's default dtype there."""

    parts: tuple[Part, ...]
    columns: Choice
    transform: Callable[[dict[str, Any]], Any] | None
    reader: str | None
    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)


@dataclass(frozen=True)
class Counted:
    """What a loader has found in a part.

    Attributes
    ----------
    rows : int
        How many.
    kinds : dict of str or None
        Of each column that is wanted, what its values are; None where only the user's reader knows.
    contents : bytes
        Tells it from other contents.
    """

    rows: int
    kinds: Kinds | None
    contents: bytes


@dataclass(frozen=True)
class Hold:
    """What a loader is to hold of a block.

    Attributes
    ----------
    block : Block
        Which.
    parts : tuple of int
        Its parts of it.
    still : frozenset of (int, int)
        Epoch and number of all blocks that the trainer has not done with; this one's among them.
    """

    block: Block
    parts: tuple[int, ...]
    still: frozenset[tuple[int, int]]


@functools.lru_cache(maxsize=1 << 16)
def part_text(part: Part) -> str:
    """Name a part, for the note of a loader that dies at it."""
    return item_of(f"part {part.path}")


def pack_files(files: Files) -> bytes:
    """Pickle a dataset, what is in ``__main__`` included; raises StreamError where that cannot be done."""
    try:
        pickled: bytes = cloudpickle.dumps(files, protocol=5)
    except Exception as error:  # a transform may raise anything here
        raise StreamError(
            f"FileDataset: transform cannot be sent to the loaders, as it cannot be pickled: {type(error).__name__}: "
            f"{as_line(error)}. Let it open files and connections when it is first called."
        ) from error
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)]).encode()
    return _HEAD.pack(len(path)) + path + pickled


def unpack_files(payload: memoryview) -> Files:
    """Make what `pack_files` packed, with the trainer's way to import modules."""
    (length,) = _HEAD.unpack_from(payload)
    begin = _HEAD.size + length
    for entry in json.loads(bytes(payload[_HEAD.size : begin])):
        if entry not in sys.path:
            sys.path.append(entry)
    files: Files = pickle.loads(payload[begin:])
    return files


def pack_error(error: Exception, part: str = "part files") -> bytes:
    """Pickle the exception that is being handled: a sentence as it is, others with their traceback."""
    if isinstance(error, StreamError):
        return pickle.dumps(str(error))
    return pack_exception(f"in a loader that reads {part}")


def raise_error(pickled: memoryview) -> None:
    """Raise what `pack_error` packed."""
    error = pickle.loads(pickled)
    if isinstance(error, str):
        raise StreamError(error)
    reraise(error)
