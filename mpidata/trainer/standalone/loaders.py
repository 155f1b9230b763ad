"""A loader in the trainer's own process: outside a job, and under `mpidata try`."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import torch

from mpidata.loaders.batches import Batches
from mpidata.loaders.file_work import FileWork
from mpidata.loading import loader_process
from mpidata.loading.transport import Buffer, Closed, Joined, Kind, Lost, Parcel, Request, Retires

__all__ = ["LocalLoaders"]

_LOADER = 0


class LocalLoaders:
    """`Loaders` of a trainer whose one loader works while the trainer waits in `take`, and the loader's `Requests`.

    Parameters
    ----------
    trainer : int
        Number of this trainer.

    Notes
    -----
    One thread. When a loop waits for something that will not come, `take` returns at once.
    """

    def __init__(self, trainer: int = 0) -> None:
        self._trainer = trainer
        self._parcels: dict[int, deque[Parcel]] = {}
        self._joined: set[int] = set()
        self._dropped: deque[int] = deque()
        self._workers = (_Batches(self), FileWork(self))

    def alive(self) -> frozenset[int]:
        """Return the number of the loader."""
        return frozenset({_LOADER})

    def send(self, loader: int, dataset: int, kind: int, number: int, payload: Buffer) -> bool:
        """Send the loader a request."""
        self._parcels.setdefault(dataset, deque())
        request = Request(self._trainer, dataset, int(kind), number, memoryview(bytes(payload)))
        with loader_process.serving():
            any(worker.take(request) for worker in self._workers)
        return True

    def take(self, dataset: int, timeout_s: float) -> Parcel | Joined | Retires | Lost | Closed | None:
        """Return the next event of this dataset; with a `timeout_s` the loader works until there is one."""
        self._forget_dropped()
        if dataset not in self._joined:
            self._joined.add(dataset)
            return Joined(_LOADER)
        parcels = self._parcels.setdefault(dataset, deque())
        while not parcels and timeout_s > 0:
            with loader_process.serving():
                if not any(worker.work() for worker in self._workers):
                    break
        return parcels.popleft() if parcels else None

    def drop(self, dataset: int) -> None:
        """Make the loader forget a dataset at the next `take`: garbage collection may call this at any time."""
        self._dropped.append(dataset)

    def _forget_dropped(self) -> None:
        while self._dropped:
            dataset = self._dropped.popleft()
            if self._parcels.pop(dataset, None) is not None:
                self.send(_LOADER, dataset, Kind.FORGET, 0, b"")
                del self._parcels[dataset]

    def next(self, timeout_s: float) -> Request | Closed | None:
        """Return None: `send` has given all requests to the workers."""
        return None

    def answer(self, request: Request, status: int, pickle: Buffer, buffers: Sequence[Buffer] = ()) -> None:
        """Keep an answer for `take`."""
        if (parcels := self._parcels.get(request.dataset)) is not None:
            kept = [_writable(buffer) for buffer in buffers]
            parcels.append(
                Parcel(_LOADER, request.dataset, request.kind, request.number, status, memoryview(pickle), kept)
            )

    def sign_of_life(self, at: str, long: bool = False) -> None:
        """Do nothing: nobody listens."""


class _Batches(Batches):
    """Preserves the script's random states, because a loader seeds them before each batch."""

    def work(self) -> bool:
        """Make a batch."""
        states: list[tuple[Callable[..., object], object]] = [
            (random.setstate, random.getstate()),
            (np.random.set_state, np.random.get_state()),
            (torch.default_generator.set_state, torch.default_generator.get_state()),
        ]
        try:
            return super().work()
        finally:
            for put_back, state in states:
                put_back(state)


def _writable(buffer: Buffer) -> memoryview:
    return np.frombuffer(memoryview(buffer).cast("B"), np.uint8).copy().data if len(buffer) else memoryview(bytearray())
