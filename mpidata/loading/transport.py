"""What passes between trainers and loaders: requests of a trainer, and the loaders' answers, called parcels.

A trainer sends nothing that it could not take the answer to, and a loader nothing that was not asked for, so the number
of requests that wait for an answer is the only flow control. The real classes are in mpidata/loading/over_mpi.py.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

__all__ = [
    "Buffer",
    "Closed",
    "Joined",
    "Kind",
    "Loaders",
    "Lost",
    "Parcel",
    "Request",
    "Requests",
    "Retires",
    "Status",
]

Buffer: TypeAlias = "bytes | bytearray | memoryview"
"""Bytes in one piece: `PickleBuffer.raw()`, or the `data` of an array that is contiguous."""


class Kind(enum.IntEnum):
    """What a request is about; it, its number and its payload mean what the datasets agree on."""

    DEFINE = 0
    FORGET = 1
    BATCH = 2
    CREDIT = 3
    PARTS = 4
    COUNT = 5
    AGREE = 6


class Status(enum.IntEnum):
    """How a request has ended."""

    OK = 0
    EXCEPTION = 1


class Request(NamedTuple):
    """What a trainer asks for.

    Attributes
    ----------
    trainer : int
        Who asks, from 0.
    dataset : int
        Number that the trainer has given the dataset; another trainer may give the same number to another one.
    kind : int
        A `Kind`.
    number : int
        For the answer, which bears it too; at least 0.
    payload : memoryview
        Of bytes; its memory is given back when nothing refers to it any more.
    """

    trainer: int
    dataset: int
    kind: int
    number: int
    payload: memoryview


@dataclass(frozen=True)
class Closed:
    """The loader is to leave, or the trainer's job is over or stopping: nothing more comes."""


class Parcel(NamedTuple):
    """An answer.

    Attributes
    ----------
    loader, dataset, kind, number : int
        Who answers, and what.
    status : int
        A `Status`.
    pickle : memoryview
        Of bytes.
    buffers : list of memoryview
        Of bytes, writable, each beginning on a boundary of 64 bytes. One block of memory holds the whole parcel: it is
        given back when nothing refers to any part of it any more, tensors made from it included.
    """

    loader: int
    dataset: int
    kind: int
    number: int
    status: int
    pickle: memoryview
    buffers: list[memoryview]

    @property
    def size(self) -> int:
        """Number of bytes, at least 1."""
        return self.pickle.nbytes + sum(buffer.nbytes for buffer in self.buffers)


@dataclass(frozen=True)
class Joined:
    """A loader takes requests from now on. What replaces a dead one has another number; one that rested has not."""

    loader: int


@dataclass(frozen=True)
class Retires:
    """A loader takes no more requests, though it answers those that it has: then it is `Lost`."""

    loader: int


@dataclass(frozen=True)
class Lost:
    """A loader answers no more: it has died, was given up, has left, or rests. What it owes is to be asked of others.

    Attributes
    ----------
    loader : int
        Which.
    at : str
        Text of its last `sign_of_life`, where it has died or hung at something; else empty.
    """

    loader: int
    at: str = ""


class Loaders(Protocol):
    """The trainer's side. Any thread may call; `take` from one at a time for each dataset."""

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that take requests now; may be ahead of what `take` has told. Does not block."""

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send a request; does not block. The payload is copied.

        False: this loader retires or is lost, and nothing is sent; `take` tells so next.

        The first request about a dataset, in whatever loader, opens it: from then on its parcels are kept for `take`.
        """

    def take(self, dataset: int, timeout_s: float) -> Parcel | Joined | Retires | Lost | Closed | None:
        """Get the next that concerns this dataset: None where nothing came within `timeout_s`, seconds.

        Sleeps while it waits, without the GIL. Closed where the job is over or stopping. Every dataset is told of each
        loader that joined, retires or was lost since the job began, in their order; what had come whole of a lost
        loader may come before or after.

        Raises
        ------
        LibraryError
            The job has failed.
        """

    def drop(self, dataset: int) -> None:
        """Have the loaders forget a dataset, and drop what has come for it and may still come.

        Its number is not to be used again. For finalizers: does not block or raise, and where the thread is within
        another call, that is done at the next one. Nothing in a forked child.
        """


class Requests(Protocol):
    """The loader's side. One thread."""

    def next(self, timeout_s: float) -> Request | Closed | None:
        """Get the next request, in the order of each trainer's; None where none came within `timeout_s`, seconds.

        Sleeps while it waits, without the GIL. 0 says that there is work to do: one that retires is not closed then.
        """

    def answer(self, request: Request, status: int, pickle: Buffer, buffers: Sequence[Buffer] = ()) -> None:
        """Answer a request: one parcel, or none at all. Does not block.

        The buffers are sent from where they lie, and must not be changed any more; they are kept until they have left.
        """

    def sign_of_life(self, at: str, long: bool = False) -> None:
        """Say that this loader goes on, and at what (an index, a file) it is, for the note of its end.

        Where it is tried again, the text is the same; empty where there is nothing to do, which `next` says by itself.
        `long`: what begins may take as long as the start of a program, as building a dataset or counting rows does.
        """
