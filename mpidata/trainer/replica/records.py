"""Messages between the first rank of a replica and its mates."""

from __future__ import annotations

import pickle
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import LibraryError, StreamError

__all__ = ["Facts", "Kind", "Word", "error_of", "pack", "pack_error", "unpack"]


class Kind(IntEnum):
    """The kind of a record for the mates."""

    BATCH = 1  # its description, and `Facts`; the memory of its tensors follows
    AHEAD = 2  # there is another batch
    CHECKPOINT = 3  # take it now
    END = 4  # whether the job was stopped, and `Facts`
    ERROR = 5  # see `pack_error`
    ALIKE = 6  # what the first rank has made, as torch.save writes it
    CALL = 7  # a call that the mates must also make, as text
    LOADERS = 8  # what a call about the loaders has returned, see loaders.py
    COUNT = 9  # the status with which a batch of loaders was counted
    GONE = 10  # its script has ended
    OVER = 11  # it has left the job


class Word(IntEnum):
    """The kind of a mate's message."""

    LEFT = 1  # it has left its loop, and why
    GONE = 2  # its script has ended
    REPORT = 3  # a name and a value
    LOSSES = 4  # the number of a batch, and sums
    CHECKPOINT = 5  # a request, after which batch
    CANCEL = 6  # ids
    WAITS = 7  # the call in which it has waited for some seconds, and how many records it has received


class Facts(NamedTuple):
    """Further facts that are known with a batch.

    Attributes
    ----------
    steps : int
        Number of steps of each simulation; negative if unknown.
    moments : ndarray or None
        Moments of the statistics of the fields.
    share : (int, int) or None
        Samples of the batch, and number of trainers that share it, if they do.
    """

    steps: int = -1
    moments: NDArray[np.float64] | None = None
    share: tuple[int, int] | None = None


def pack(*things: Any) -> bytes:
    """Pack a record or a word; without tensors, and only with small arrays."""
    return pickle.dumps(things, pickle.HIGHEST_PROTOCOL)


def unpack(head: memoryview) -> tuple[Any, ...]:
    """Unpack what `pack` has packed, on a rank of the same job."""
    things: tuple[Any, ...] = pickle.loads(head)
    return things


def pack_error(error: BaseException) -> tuple[bool, str]:
    """Return whether an error of mpidata is the library's, and its text."""
    return isinstance(error, LibraryError), str(error)


def error_of(of_library: bool, text: str) -> LibraryError | StreamError:
    """Make the error that the first rank raised."""
    return (LibraryError if of_library else StreamError)(text)
