"""A dataset that the loaders hold, and the requests for its batches."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from mpidata.datasets.data_loader.excluded_indices import ExcludedIndices
from mpidata.errors import MpidataError, StreamError
from mpidata.loading.agreement import raise_disagreement
from mpidata.loading.batch_messages import pack_batch
from mpidata.loading.definition import Epochs, dataset_numbers
from mpidata.loading.parcels import unpack
from mpidata.loading.transport import Joined, Kind, Lost, Parcel, Retires, Status
from mpidata.trainer.loader_access import Place

__all__ = ["Order", "Remote"]


@dataclass(eq=False)
class Order:
    """A requested batch.

    Attributes
    ----------
    number : int
        Of the request.
    batch : int
        Number of the batch in its epoch.
    indices : object
        Indices of the samples.
    seed : int
        Of random, numpy and torch.
    epochs : tuple of int or None
        The epochs that the trainer's dataset got by `set_epoch`, see `epoch_takers`.
    loader : int or None
        The loader that makes the batch; None: not requested yet.
    losses : int
        Number of loaders that died while they owed it.
    parcel : Parcel or None
        The answer.
    """

    number: int
    batch: int
    indices: Any
    seed: int
    epochs: Epochs = ()
    loader: int | None = None
    losses: int = 0
    parcel: Parcel | None = None


class Remote:
    """A dataset on the loaders.

    Parameters
    ----------
    place : Place
        Of this trainer.
    definition : bytes
        For the loaders; kept, because loaders may join later.
    agreement : bytes, optional
        The arguments that must be the same on all trainers, see `pack_agreement`; also kept.

    Notes
    -----
    Thread-safe. When nothing refers to this object any more, the loaders drop the dataset.
    """

    def __init__(self, place: Place, definition: bytes, agreement: bytes = b"") -> None:
        self._loaders, self._workers, self._same_call = place.loaders, place.workers, place.same_call
        self._definition, self._agreement = definition, agreement
        self._dataset = next(dataset_numbers)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._worker: dict[int, int] = {}
        self._load: dict[int, int] = {}
        self._owed: dict[int, Order] = {}
        self._homeless: deque[Order] = deque()
        self._unwanted: deque[Order] = deque()
        self._left_out = ExcludedIndices(self._dataset, place.retries)
        self._failure: Parcel | None = None
        self._length: Parcel | None = None
        weakref.finalize(self, place.loaders.drop, self._dataset).atexit = False
        self.take(0.0)

    def take(self, timeout_s: float) -> None:
        """Handle the events that have arrived; raises an exception that building the dataset raised. Sleeps.

        Parameters
        ----------
        timeout_s : float
            How long to wait for the first event, in seconds.
        """
        with self._lock:
            self._give_back_unwanted()
            event = self._loaders.take(self._dataset, timeout_s)
            while event is not None:
                if isinstance(event, Joined):
                    self._join(event.loader)
                elif isinstance(event, Retires):
                    self._load.pop(event.loader, None)  # still makes the batches that it owes
                elif isinstance(event, Lost):
                    self._left_out.lose(event.at)
                    self._lose(event.loader)
                elif isinstance(event, Parcel):
                    self._receive(event)
                else:
                    raise StreamError("The job is being stopped: no further batch will arrive.")
                event = self._loaders.take(self._dataset, 0.0)
            if self._failure is not None:
                unpack(self._failure)

    def wants(self, ahead: int, orders: int) -> bool:
        """Whether one more batch may be requested; batches that lost loaders owed are requested first.

        Parameters
        ----------
        ahead : int
            Largest number of unanswered requests per loader.
        orders : int
            Number of batches that the caller has requested and not yet returned.
        """
        with self._lock:
            while self._homeless and (loader := self._free(ahead)) is not None:
                self._send(self._homeless.popleft(), loader)
            return orders < ahead * len(self._load) and self._free(ahead) is not None

    def order(self, batch: int, indices: Any, seed: int, epochs: Epochs = ()) -> Order:
        """Request a batch; the arguments are the attributes of `Order`."""
        order = Order(next(self._numbers), batch, indices, seed, epochs)
        with self._lock:
            loader = min(self._load, key=self._load.__getitem__, default=None)
            if loader is None:  # lost just now
                self._homeless.append(order)
            else:
                self._send(order, loader)
        return order

    def cancel(self, orders: list[Order]) -> None:
        """Cancel these requests. Does not block, because the finalizer of an iterator calls it."""
        self._unwanted.extend(orders)
        if os.getpid() == self._process and self._lock.acquire(blocking=False):
            try:
                with contextlib.suppress(MpidataError):  # the job may be over
                    self._give_back_unwanted()
            finally:
                self._lock.release()

    def length(self, timeout_s: float) -> int | None:
        """Return the length of the dataset, or None if no loader has sent it yet. Raises TypeError if it has none."""
        if self._length is None:
            self._same_call("the length of a DataLoader's dataset")
            self.take(timeout_s)
        if self._length is None:
            return None
        length = unpack(self._length)
        if length is None:
            raise TypeError("The dataset that the loaders built has no length. Give it a method __len__.")
        return int(length)

    def _free(self, ahead: int) -> int | None:
        """Return the loader with the fewest requests, or None if that one has `ahead` requests already."""
        loader = min(self._load, key=self._load.__getitem__, default=None)
        return loader if loader is not None and self._load[loader] < ahead else None

    def _send(self, order: Order, loader: int) -> None:
        workers = max(self._workers, 1 + max(self._worker.values()))
        indices = _dumps(self._left_out.without(order.indices))
        payload = pack_batch(self._worker[loader], workers, order.seed, order.losses > 1, order.epochs, indices)
        if self._loaders.send(loader, self._dataset, Kind.BATCH, order.number, payload):
            order.loader = loader
            self._owed[order.number] = order
            self._load[loader] += 1
        else:  # the next event is that it retires or is lost
            self._load.pop(loader)
            self._homeless.append(order)

    def _join(self, loader: int) -> None:
        if loader not in self._loaders.alive():
            return  # the next event is that it is lost
        self._worker[loader] = next(i for i in itertools.count() if i not in self._worker.values())
        self._load[loader] = 0
        self._loaders.send(loader, self._dataset, Kind.DEFINE, 0, self._definition)
        if self._agreement:
            self._loaders.send(loader, self._dataset, Kind.AGREE, 0, self._agreement)

    def _lose(self, loader: int) -> None:
        """Queue the batches that a lost loader owed for other loaders."""
        self._worker.pop(loader, None)
        self._load.pop(loader, None)
        lost = [order for order in self._owed.values() if order.loader == loader]
        for order in lost:
            del self._owed[order.number]
            order.loader = None
            order.losses += 1
        self._homeless.extend(lost)

    def _receive(self, parcel: Parcel) -> None:
        if parcel.kind == Kind.AGREE:
            raise_disagreement(parcel.pickle)
        if parcel.kind == Kind.DEFINE:
            self._length = self._length or parcel
            if parcel.status != Status.OK:
                self._failure = parcel
        elif (order := self._owed.get(parcel.number)) is not None and order.loader == parcel.loader:
            del self._owed[parcel.number]
            self._owes_less(parcel.loader)
            order.parcel = parcel

    def _owes_less(self, loader: int) -> None:
        if loader in self._load:  # otherwise it retires
            self._load[loader] -= 1

    def _give_back_unwanted(self) -> None:
        numbers: dict[int, list[int]] = {}
        while self._unwanted:
            order = self._unwanted.popleft()
            if self._owed.pop(order.number, None) is not None and order.loader is not None:
                self._owes_less(order.loader)
                numbers.setdefault(order.loader, []).append(order.number)
            elif order in self._homeless:
                self._homeless.remove(order)
        for loader, gone in numbers.items():
            self._loaders.send(loader, self._dataset, Kind.FORGET, 0, np.array(gone, np.int64).tobytes())


def _dumps(indices: Any) -> bytes:
    if type(indices) is list and all(type(index) is int for index in indices):
        return pickle.dumps(indices, protocol=5)
    return bytes(cloudpickle.dumps(indices, protocol=5))
