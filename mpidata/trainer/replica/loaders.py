"""The loaders as the ranks of a replica see them: what comes to the first one comes to its mates, in the same order.

A dataset on loaders computes what it asks for from what has come. So a mate runs the same code, asks nobody, and is
given what each call of the first rank has returned: both come to the same batches, made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from mpidata.errors import JobInterrupt, MpidataError, StreamError
from mpidata.loading.transport import Buffer, Closed, Joined, Kind, Loaders, Lost, Parcel, Retires
from mpidata.trainer.batches.pool import ALIGNMENT, MemoryPool, round_up
from mpidata.trainer.replica.link import Bytes, Incoming, Link, Tag, bytes_of
from mpidata.trainer.replica.records import error_of, pack, pack_error, unpack

__all__ = ["FirstLoaders", "MateLoaders"]

_Event: TypeAlias = "Parcel | Joined | Retires | Lost | Closed | None"
_ASKS = (Kind.BATCH, Kind.CREDIT)  # of other requests nobody looks whether they were sent
_NOTHING: Any = b""  # in place of what travels beside it
_SENT, _CAME, _FAILED = "sent", "came", "failed"


class FirstLoaders:
    """`Loaders` of the first rank.

    Parameters
    ----------
    loaders : Loaders
        The way to them.
    link : Link
        To the mates.
    """

    def __init__(self, loaders: Loaders, link: Link) -> None:
        self._loaders, self._link = loaders, link
        self._alive: frozenset[int] = frozenset()

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that took requests when the last one joined."""
        return self._alive

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send a request; False: this loader takes none any more."""
        sent = self._loaders.send(loader, dataset, kind, number, payload)
        if kind in _ASKS:
            self._tell(dataset, pack(_SENT, sent))
        return sent

    def take(self, dataset: int, timeout_s: float) -> _Event:
        """Get the next that concerns this dataset; sleeps until the mates have it, too."""
        try:
            event = self._loaders.take(dataset, timeout_s)
        except JobInterrupt:
            self._tell(dataset, pack(_CAME, Closed(), self._alive))
            raise
        except MpidataError as error:
            self._tell(dataset, pack(_FAILED, *pack_error(error)))
            raise
        if isinstance(event, Joined):
            self._alive = self._loaders.alive()
        if isinstance(event, Parcel):
            arrays = [bytes_of(event.pickle), *map(bytes_of, event.buffers)]
            self._tell(dataset, pack(_CAME, event._replace(pickle=_NOTHING, buffers=[]), self._alive), arrays)
        else:
            self._tell(dataset, pack(_CAME, event, self._alive))
        return event

    def drop(self, dataset: int) -> None:
        """Have the loaders forget a dataset."""
        self._loaders.drop(dataset)

    def _tell(self, dataset: int, head: bytes, arrays: list[Bytes] | None = None) -> None:
        self._link.send(self._link.mates, Tag.DATASET + dataset, head, arrays or [], wait=arrays is not None)


class MateLoaders:
    """`Loaders` of a mate.

    Parameters
    ----------
    link : Link
        To the first rank.
    when_closed : callable
        Called before `take` says that nothing more comes; what it raises comes from `take`.
    """

    def __init__(self, link: Link, when_closed: Callable[[], object]) -> None:
        self._link, self._when_closed = link, when_closed
        self._alive: frozenset[int] = frozenset()
        self._pool = MemoryPool()

    def alive(self) -> frozenset[int]:
        """Numbers of the loaders that took requests when the last one joined."""
        return self._alive

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Find out whether the first rank could send this request."""
        if kind not in _ASKS:
            return True
        sent: bool = self._next(dataset, _SENT)[1][0]
        return sent

    def take(self, dataset: int, timeout_s: float) -> _Event:
        """Get what the first rank has got."""
        event: _Event
        incoming, (event, self._alive) = self._next(dataset, _CAME)
        if isinstance(event, Closed):
            self._when_closed()
        if isinstance(event, Parcel):
            pickle, *buffers = self._received(incoming)
            return event._replace(pickle=pickle, buffers=buffers)
        return event

    def drop(self, dataset: int) -> None:
        """Do nothing: the first rank has the loaders forget it."""

    def _next(self, dataset: int, what: str) -> tuple[Incoming, tuple[Any, ...]]:
        incoming = self._link.receive(0, Tag.DATASET + dataset)
        found, *things = unpack(incoming.head)
        if found == _FAILED:
            raise error_of(*things)
        if found != what:
            raise StreamError(
                "A rank of a replica iterates over its loaders otherwise than the first one. Let all ranks of a "
                "replica make the same calls of DataLoader and FileDataset, in the same order."
            )
        return incoming, tuple(things)

    def _received(self, incoming: Incoming) -> list[memoryview]:
        """Receive a parcel into one block of memory, which is used again when nothing refers to it any more."""
        ends = np.cumsum([round_up(size, ALIGNMENT) for size in incoming.sizes]).tolist()
        memory = self._pool.take(ends[-1], ends[-1] // 4)
        places = [
            memory[end - round_up(size, ALIGNMENT) :][:size] for end, size in zip(ends, incoming.sizes, strict=True)
        ]
        incoming.fill(places)
        return [place.data for place in places]
