"""Messages within a replica: from its first rank to its mates, and back."""

from __future__ import annotations

import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import RankDiedError

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Bytes", "Incoming", "Link", "Tag", "bytes_of"]

Bytes: TypeAlias = "NDArray[np.uint8]"
"""Flat, contiguous memory of an array."""

_INLINE = 16 << 10
"""Largest array, in bytes, that is sent with the head: up to this size a copy costs less than a message."""

_PIECE = 64 << 20
_ALIGNMENT = 64
_SHORTEST_S, _LONGEST_S, _PATIENT_S = 2e-5, 2e-3, 2e-2
_LOOK_EVERY_S = 0.05
_LEAD = 16
"""Number of messages with `wait` that may be on the way, so that the first rank need not wait for a mate at each small
batch."""

_COUNT = struct.Struct("<q")


class Tag(IntEnum):
    """Kinds of messages; each is sent and received by one thread at a time."""

    RECORD = 1  # to the mates: all that they get, in order
    WORD = 2  # to the first rank: a mate's message
    STATE = 3  # to the first rank: a mate's part of a checkpoint


class Link:
    """The ranks of one replica.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm
        Communicator of the replica; its first rank is rank 0.
    replica : int
        Number of the replica, for errors.
    look : callable, optional
        Called periodically during a wait, which raises what it raises.
    when_died : callable, optional
        Called if a rank of the replica has died, before RankDiedError is raised.

    Notes
    -----
    Any thread. Waits sleep between looks, with increasing pauses.
    """

    def __init__(
        self,
        communicator: MPI.Intracomm,
        replica: int,
        look: Callable[[], object] = lambda: None,
        when_died: Callable[[], object] = lambda: None,
    ) -> None:
        from mpi4py import MPI

        self._mpi, self._communicator, self._replica = MPI, communicator, replica
        communicator.Set_errhandler(MPI.ERRORS_RETURN)
        self._look, self._when_died = look, when_died
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        self.sent: Counter[int] = Counter()  # messages by tag
        self._unsent: list[tuple[list[MPI.Request], object]] = []
        self._untaken: deque[tuple[list[MPI.Request], object]] = deque()
        self._lock = threading.Lock()

    @property
    def mates(self) -> range:
        """Ranks of the mates."""
        return range(1, self.size)

    def send(self, to: Sequence[int], tag: int, head: bytes, arrays: Sequence[Bytes] = (), wait: bool = True) -> None:
        """Send a head and arrays to these ranks.

        Sleeps until the arrays may be changed again, and these ranks take all but the last few messages with `wait`.
        Without `wait` it does not block, and keeps the arrays as long as MPI needs them.
        """
        self.sent[tag] += 1
        packed, large = _pack(head, arrays)
        heads, pieces = [], []
        # A small message is sent before it is received; that of Issend is sent when it is.
        begin = self._communicator.Issend if wait else self._communicator.Isend
        try:
            for rank in to:
                heads.append(begin(packed, rank, tag))
                pieces += [self._communicator.Isend(piece, rank, tag) for one in large for piece in _pieces(one)]
            if wait:
                with self._lock:
                    self._untaken.append((heads, packed))
                    late = self._untaken.popleft()[0] if len(self._untaken) > _LEAD else []
                self._sleep_until_sent(pieces)
                self._sleep_until_sent(late)
            else:
                with self._lock:
                    self._unsent.append((heads + pieces, (packed, large)))
                    self._unsent = [kept for kept in self._unsent if not self._mpi.Request.Testall(kept[0])]
        except self._mpi.Exception as error:
            raise self._died(error) from None

    def flush(self) -> None:
        """Sleep until all messages have left."""
        with self._lock:
            try:
                self._sleep_until_sent([request for kept, _ in [*self._unsent, *self._untaken] for request in kept])
            except self._mpi.Exception as error:
                raise self._died(error) from None
            self._unsent = []
            self._untaken.clear()

    def receive(self, source: int, tag: int) -> Incoming:
        """Wait for the next message; receive its arrays with `Incoming.fill` afterwards."""
        try:
            incoming: Incoming = self._sleep_until(lambda: self._probe(source, tag))
        except self._mpi.Exception as error:
            raise self._died(error) from None
        return incoming

    def received(self, source: int, tag: int) -> Incoming | None:
        """Return the next message, or None if there is none. Does not block."""
        try:
            return self._probe(source, tag)
        except self._mpi.Exception as error:
            raise self._died(error) from None

    def _probe(self, source: int, tag: int) -> Incoming | None:
        status = self._mpi.Status()
        message = self._communicator.Improbe(source, tag, status)
        if message is None:
            return None
        return Incoming(self, source, tag, self._take(message, status.Get_count()))

    def _take(self, message: MPI.Message, size: int) -> Bytes:
        memory = np.empty(size, np.uint8)
        request = message.Irecv(memory)
        self._sleep_until(lambda: request.Test() or None)
        return memory

    def fill(self, source: int, tag: int, arrays: Sequence[Bytes]) -> None:
        """Receive arrays that follow a head; sleeps."""
        try:
            receive = self._communicator.Irecv
            requests = [receive(piece, source, tag) for one in arrays for piece in _pieces(one)]
            self._sleep_until(lambda: self._mpi.Request.Testall(requests) or None)
        except self._mpi.Exception as error:
            raise self._died(error) from None

    def _sleep_until_sent(self, requests: list[MPI.Request]) -> None:
        self._sleep_until(lambda: self._mpi.Request.Testall(requests) or None)

    def _sleep_until(self, test: Callable[[], Any]) -> Any:
        pause, begun, looked = _SHORTEST_S, time.monotonic(), 0.0
        while (found := test()) is None:
            now = time.monotonic()
            if now - max(begun, looked) > _LOOK_EVERY_S:
                looked = now
                self._look()
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_S if now - begun < 1.0 else _PATIENT_S)
        return found

    def _died(self, error: Exception) -> RankDiedError:
        self._when_died()
        return RankDiedError(f"A rank of replica {self._replica} has died, and the replica cannot continue ({error}).")


class Incoming:
    """A message that has arrived, except for its large arrays.

    Attributes
    ----------
    head : memoryview
        The head, as bytes.
    sizes : list of int
        Sizes of the arrays in bytes.
    """

    def __init__(self, link: Link, source: int, tag: int, packed: Bytes) -> None:
        self._link, self._source, self._tag = link, source, tag
        (count,) = _COUNT.unpack_from(packed.data)
        at = (1 + count) * _COUNT.size
        self.sizes: list[int] = packed[_COUNT.size : at].view(np.int64).tolist()
        (length,) = _COUNT.unpack_from(packed.data, at)
        at += _COUNT.size
        self.head = packed[at : at + length].data
        self._inline = packed[_aligned(at + length) :]

    def fill(self, places: Sequence[Bytes]) -> None:
        """Receive the arrays into these places; sleeps."""
        at, large = 0, []
        for size, place in zip(self.sizes, places, strict=True):
            if size > _INLINE:
                large.append(place)
            else:
                place[:] = self._inline[at : at + size]
                at = _aligned(at + size)
        if large:
            self._link.fill(self._source, self._tag, large)

    def arrays(self) -> list[Bytes]:
        """Receive the arrays into memory of their own; sleeps."""
        places = [np.empty(size, np.uint8) for size in self.sizes]
        self.fill(places)
        return places


def bytes_of(buffer: Any) -> Bytes:
    """View contiguous memory as bytes."""
    return np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0, np.uint8)


def _pack(head: bytes, arrays: Sequence[Bytes]) -> tuple[Bytes, list[Bytes]]:
    """Make one message of the head and the small arrays; the others follow separately."""
    sizes = [len(one) for one in arrays]
    first = _aligned((2 + len(sizes)) * _COUNT.size + len(head))
    packed = np.zeros(first + sum(_aligned(size) for size in sizes if size <= _INLINE), np.uint8)
    numbers = struct.pack(f"<{len(sizes) + 2}q", len(sizes), *sizes, len(head))
    packed[: len(numbers) + len(head)] = np.frombuffer(numbers + head, np.uint8)
    at = first
    for one in arrays:
        if len(one) <= _INLINE:
            packed[at : at + len(one)] = one
            at += _aligned(len(one))
    return packed, [one for one in arrays if len(one) > _INLINE]


def _pieces(array: Bytes) -> list[Bytes]:
    return [array[at : at + _PIECE] for at in range(0, len(array), _PIECE)]


def _aligned(number: int) -> int:
    return -(-number // _ALIGNMENT) * _ALIGNMENT
