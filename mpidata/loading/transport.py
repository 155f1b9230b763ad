"""Messages between trainers and loaders: requests of a trainer, and the loaders' answers, called parcels.

A trainer only sends requests whose answers it can take, and a loader only answers requests, so the number of unanswered
requests is the only flow control. The implementations are in mpidata/loading/over_mpi.py.
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
"""Contiguous bytes: `PickleBuffer.raw()`, or the `data` of a contiguous array."""


class Kind(enum.IntEnum):
    """Kind of a request; the datasets define its meaning, and that of number and payload."""

    DEFINE = 0
    FORGET = 1
    BATCH = 2
    CREDIT = 3
    PARTS = 4
    COUNT = 5
    AGREE = 6


class Status(enum.IntEnum):
    """Result of a request."""

    OK = 0
    EXCEPTION = 1


class Request(NamedTuple):
    """A request of a trainer.

    Attributes
    ----------
    trainer : int
        The trainer that sent it, from 0.
    dataset : int
        The trainer's number of the dataset; another trainer may use the same number for a different one.
    kind : int
        A `Kind`.
    number : int
        Repeated in the answer; at least 0.
    payload : memoryview
        Of bytes; its memory is released when nothing refers to it any more.
    """

    trainer: int
    dataset: int
    kind: int
    number: int
    payload: memoryview


@dataclass(frozen=True)
class Closed:
    """No further events: the loader must leave, or the trainer's job is over or stopping."""


class Parcel(NamedTuple):
    """An answer.

    Attributes
    ----------
    loader, dataset, kind, number : int
        The loader that answers, and the request.
    status : int
        A `Status`.
    pickle : memoryview
        Of bytes.
    buffers : list of memoryview
        Of bytes, writable, each aligned to 64 bytes. One block of memory holds the whole parcel. It is released when
        nothing, including tensors made from it, refers to any part of it any more.
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
    """A loader takes requests from now on. A replacement has a new number; one that rested keeps its number."""

    loader: int


@dataclass(frozen=True)
class Retires:
    """A loader takes no more requests, but answers those that it has; after that it is `Lost`."""

    loader: int


@dataclass(frozen=True)
class Lost:
    """A loader answers no more: it died, was abandoned, left, or rests. Send its unanswered requests to others.

    Attributes
    ----------
    loader : int
        Number of the loader.
    at : str
        Text of its last `sign_of_life`, if it died or hung while doing something; otherwise empty.
    """

    loader: int
    at: str = ""


class Loaders(Protocol):
    """The trainer's side. Thread-safe, but `take` only from one thread at a time for each dataset."""

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that take requests now; may be ahead of the events from `take`. Does not block."""

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send a request; does not block. The payload is copied.

        False: this loader retires or is lost, as `take` reports next, and nothing was sent.

        The first request about a dataset, to any loader, opens it: from then on its parcels are kept for `take`.
        """

    def take(self, dataset: int, timeout_s: float) -> Parcel | Joined | Retires | Lost | Closed | None:
        """Return the next event of this dataset, or None if there was none within `timeout_s`, seconds.

        Sleeps while it waits, without the GIL. Closed if the job is over or stopping. Every dataset gets the events of
        all loaders that joined, retire or were lost since the job started, in order; complete parcels of a lost loader
        may come before or after.

        Raises
        ------
        LibraryError
            The job has failed.
        """

    def drop(self, dataset: int) -> None:
        """Have the loaders forget a dataset, and drop its parcels, including those that arrive later.

        Do not use its number again. For finalizers: does not block or raise; if the thread is within another call,
        the next call does it. No effect in a forked child.
        """


class Requests(Protocol):
    """The loader's side. For one thread."""

    def next(self, timeout_s: float) -> Request | Closed | None:
        """Return the next request, in order for each trainer; None if there was none within `timeout_s`, seconds.

        Sleeps while it waits, without the GIL. 0 means that the loader has work: Closed is not returned then.
        """

    def answer(self, request: Request, status: int, pickle: Buffer, buffers: Sequence[Buffer] = ()) -> None:
        """Answer a request: with one parcel, or not at all. Does not block.

        The buffers are not copied and must not be changed any more; they are kept until they have been sent.
        """

    def sign_of_life(self, at: str, long: bool = False) -> None:
        """Report that this loader is alive, and which index or file it works on, for the report if it dies.

        A further try must use the same text; it is empty if there is no work, which `next` reports itself. `long`: the
        work may take as long as the start of a program, for example building a dataset or counting rows.
        """
