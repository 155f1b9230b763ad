"""The loaders as the ranks of a replica see them: the mates get all messages of the first rank, in the same order.

A dataset on loaders computes its requests from the messages so far. So a mate runs the same code, sends no requests,
and gets what each call returned on the first rank: both get the same batches, which are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mpidata.errors import JobInterrupt, MpidataError, StreamError
from mpidata.loading import transport
from mpidata.loading.transport import Buffer, Closed, Joined, Loaders, Lost, Parcel, Retires
from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, round_up
from mpidata.trainer.replica.link import Bytes, Incoming, Link, Tag, bytes_of
from mpidata.trainer.replica.records import Kind, error_of, pack, pack_error

__all__ = ["FirstLoaders", "MateLoaders"]

_Event: TypeAlias = "Parcel | Joined | Retires | Lost | Closed | None"
_ASKS = (transport.Kind.BATCH, transport.Kind.CREDIT)  # for other requests nobody checks whether they were sent
_NOTHING: Any = b""  # in place of what is sent separately
_SENT, _CAME, _FAILED = "sent", "came", "failed"


class FirstLoaders:
    """`Loaders` of the first rank.

    Parameters
    ----------
    loaders : Loaders
        The connection to the loaders.
    link : Link
        The link to the mates.
    """

    def __init__(self, loaders: Loaders, link: Link) -> None:
        self._loaders, self._link = loaders, link
        self._alive: frozenset[int] = frozenset()

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that took requests when the last one joined."""
        return self._alive

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send a request; False if this loader takes no more requests."""
        sent = self._loaders.send(loader, dataset, kind, number, payload)
        if kind in _ASKS:
            self._tell(_SENT, dataset, sent)
        return sent

    def take(self, dataset: int, timeout_s: float) -> _Event:
        """Return the next event of this dataset; sleeps until the mates also have it."""
        try:
            event = self._loaders.take(dataset, timeout_s)
        except JobInterrupt:
            self._tell(_CAME, dataset, Closed(), self._alive)
            raise
        except MpidataError as error:
            self._tell(_FAILED, dataset, *pack_error(error))
            raise
        if isinstance(event, Joined):
            self._alive = self._loaders.alive()
        if isinstance(event, Parcel):
            arrays = [bytes_of(event.pickle), *map(bytes_of, event.buffers)]
            self._tell(_CAME, dataset, event._replace(pickle=_NOTHING, buffers=[]), self._alive, arrays=arrays)
        else:
            self._tell(_CAME, dataset, event, self._alive)
        return event

    def drop(self, dataset: int) -> None:
        """Make the loaders forget a dataset."""
        self._loaders.drop(dataset)

    def _tell(self, what: str, dataset: int, *things: Any, arrays: list[Bytes] | None = None) -> None:
        head = pack(Kind.LOADERS, what, dataset, *things)
        self._link.send(self._link.mates, Tag.RECORD, head, arrays or [], wait=arrays is not None)


class MateLoaders:
    """`Loaders` of a mate.

    Parameters
    ----------
    receive : callable
        Waits for the next record about loaders; returns what is in it, and the message.
    when_closed : callable
        Called before `take` returns that nothing more comes; `take` raises what it raises.
    """

    def __init__(
        self, receive: Callable[[], tuple[tuple[Any, ...], Incoming]], when_closed: Callable[[], object]
    ) -> None:
        self._receive, self._when_closed = receive, when_closed
        self._alive: frozenset[int] = frozenset()
        self._pool = MemoryPool()

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that took requests when the last one joined."""
        return self._alive

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Return whether the first rank could send this request."""
        if kind not in _ASKS:
            return True
        sent: bool = self._next(dataset, _SENT)[1][0]
        return sent

    def take(self, dataset: int, timeout_s: float) -> _Event:
        """Return the event that the first rank got."""
        event: _Event
        incoming, (event, self._alive) = self._next(dataset, _CAME)
        if isinstance(event, Closed):
            self._when_closed()
        if isinstance(event, Parcel):
            pickle, *buffers = self._received(incoming)
            return event._replace(pickle=pickle, buffers=buffers)
        return event

    def drop(self, dataset: int) -> None:
        """Do nothing: the first rank makes the loaders forget it."""

    def _next(self, dataset: int, what: str) -> tuple[Incoming, tuple[Any, ...]]:
        (found, of, *things), incoming = self._receive()
        if found == _FAILED:
            raise error_of(*things)
        if (found, of) != (what, dataset):
            raise StreamError(
                "A rank of a replica iterates over its loaders differently from the first rank. Make the same calls of "
                "DataLoader and FileDataset on all ranks of a replica, in the same order."
            )
        return incoming, tuple(things)

    def _received(self, incoming: Incoming) -> list[memoryview]:
        """Receive a parcel into one block of memory, which is reused when nothing refers to it."""
        ends = np.cumsum([round_up(size, ALIGNMENT) for size in incoming.sizes]).tolist()
        memory = self._pool.take(ends[-1], ends[-1] // 4)
        places = [
            memory[end - round_up(size, ALIGNMENT) :][:size] for end, size in zip(ends, incoming.sizes, strict=True)
        ]
        incoming.fill(places)
        return [place.data for place in places]
