"""What the first rank of a replica tells its mates of the stream, and what they tell it."""

from __future__ import annotations

import pickle
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import LibraryError, StreamError

__all__ = ["Facts", "Kind", "Word", "error_of", "pack", "pack_error", "unpack"]


class Kind(IntEnum):
    """Of a record for the mates."""

    BATCH = 1  # what it is made of, and `Facts`; the memory of its tensors follows
    AHEAD = 2  # there is another batch
    CHECKPOINT = 3  # to be taken now
    END = 4  # whether the job was stopped, and `Facts`
    ERROR = 5  # see `pack_error`
    ALIKE = 6  # what the first rank has made, as torch.save writes it


class Word(IntEnum):
    """What a mate says."""

    LEFT = 1  # its loop, and why
    GONE = 2  # its script has ended
    REPORT = 3  # a name and a value
    LOSSES = 4  # the number of a batch, and sums
    CHECKPOINT = 5  # is wanted, after which batch
    CANCEL = 6  # ids


class Facts(NamedTuple):
    """What else is known with a batch.

    Attributes
    ----------
    steps : int
        Of each simulation; negative: not known.
    moments : ndarray or None
        Of the statistics of the fields.
    share : (int, int) or None
        Samples of the batch, and how many trainers share it, where they do.
    """

    steps: int = -1
    moments: NDArray[np.float64] | None = None
    share: tuple[int, int] | None = None


def pack(*things: Any) -> bytes:
    """Write down a record or a word; no tensors, and no arrays but small ones."""
    return pickle.dumps(things, pickle.HIGHEST_PROTOCOL)


def unpack(head: memoryview) -> tuple[Any, ...]:
    """Read what `pack` has written, on a rank of the same job."""
    things: tuple[Any, ...] = pickle.loads(head)
    return things


def pack_error(error: BaseException) -> tuple[bool, str]:
    """Write down an error of mpidata: whether it is the library's, and its text."""
    return isinstance(error, LibraryError), str(error)


def error_of(of_library: bool, text: str) -> LibraryError | StreamError:
    """Make the error that the first rank has had."""
    return (LibraryError if of_library else StreamError)(text)
