"""A loader's work for DataLoaders: their datasets, and batches from them."""

from __future__ import annotations

import io
import pickle
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate, default_convert
from torch.utils.data._utils import worker as torch_worker

from mpidata.loading.batch_messages import BATCH, building_text, item_text
from mpidata.loading.definition import Definition, Epochs, default_dtype, digest, epoch_takers, unpack_definition
from mpidata.loading.parcels import pack, pack_exception
from mpidata.loading.transport import Kind, Request, Requests, Status

__all__ = ["Batches"]

_NAMED = 16
_AT_ONCE = (default_collate, default_convert)


class Batches:
    """The DataLoaders' datasets on a loader.

    Parameters
    ----------
    requests : Requests
        To answer to.

    Notes
    -----
    Trainers with identical definitions, byte for byte, share one copy.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._copies: dict[bytes, _Copy] = {}
        self._held: dict[tuple[int, int], bytes] = {}
        self._waiting: deque[Request] = deque()

    def take(self, request: Request) -> bool:
        """Take a request for a dataset or a batch, or one that cancels these."""
        if request.kind == Kind.BATCH:
            self._waiting.append(request)
        elif request.kind == Kind.DEFINE and request.number == 0:
            self._define(request)
        elif request.kind == Kind.FORGET and (request.trainer, request.dataset) in self._held:
            self._forget(request)
        else:
            return False
        return True

    def work(self) -> bool:
        """Make the batch that was requested first; False if none is requested."""
        if not self._waiting:
            return False
        request = self._waiting.popleft()
        name = self._held.get((request.trainer, request.dataset))
        copy = self._copies.get(name) if name else None
        if copy is None:
            return True  # the dataset could not be built, or was dropped: the trainer knows
        worker, workers, seed, singly, told = BATCH.unpack_from(request.payload)
        try:
            pickles = io.BytesIO(request.payload[BATCH.size :])
            if told:
                copy.tell_epochs(pickle.load(pickles))
            indices = pickle.load(pickles)
            alive = partial(self._alive, request.dataset)
            with default_dtype(copy.definition.dtype):
                batch = copy.make(worker, workers, seed, singly, indices, alive)
            status, answer = Status.OK, pack(batch)
        except Exception:  # a dataset may raise anything
            status, answer = Status.EXCEPTION, (pack_exception(f"in loader {worker}"), [])
        self._requests.answer(request, status, *answer)
        self._requests.sign_of_life("")
        return True

    def _alive(self, dataset: int, index: Any) -> None:
        self._requests.sign_of_life(item_text(dataset, index))

    def _define(self, request: Request) -> None:
        name = digest(request.payload)
        self._requests.sign_of_life(building_text(request.dataset), long=True)
        try:
            if name not in self._copies:
                self._copies[name] = _Copy(unpack_definition(request.payload))
            dataset = self._copies[name].definition.dataset
            status, answer = Status.OK, pickle.dumps(len(dataset) if hasattr(dataset, "__len__") else None)
            self._held[request.trainer, request.dataset] = name
        except Exception:  # a dataset may raise anything
            status, answer = Status.EXCEPTION, pack_exception("while a loader built the dataset")
        self._requests.answer(request, status, answer)
        self._requests.sign_of_life("")

    def _forget(self, request: Request) -> None:
        """Drop the named requests for batches, or all and the dataset."""
        key = request.trainer, request.dataset
        numbers = set(np.frombuffer(request.payload, np.int64).tolist())
        self._waiting = deque(
            r for r in self._waiting if (r.trainer, r.dataset) != key or (numbers and r.number not in numbers)
        )
        if not numbers:
            name = self._held.pop(key)
            if name not in self._held.values():
                del self._copies[name]


class _Copy:
    """A dataset in this loader's memory."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._begun = False
        self._epochs: Epochs = ()

    def tell_epochs(self, epochs: Epochs) -> None:
        """Call `set_epoch` if the trainer has called it."""
        if epochs == self._epochs:
            return
        self._epochs = epochs
        for taker, epoch in zip(epoch_takers(self.definition.dataset), epochs, strict=False):
            if epoch is not None:
                taker.set_epoch(epoch)

    def make(
        self, worker: int, workers: int, seed: int, singly: bool, indices: Any, alive: Callable[[Any], None]
    ) -> Any:
        """Fetch the samples of a batch and collate them, as a worker of torch's DataLoader does."""
        definition = self.definition
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=worker, num_workers=workers, seed=seed, dataset=definition.dataset
        )
        try:
            if not self._begun and definition.worker_init_fn is not None:
                definition.worker_init_fn(worker)
            self._begun = True
            _seed_all(seed)  # last, because worker_init_fn may seed
            samples = self._fetch(indices, singly, alive)
            if definition.collate_fn in _AT_ONCE:
                torch_worker._worker_info = None  # otherwise torch puts the batch into shared memory, needlessly
            return definition.collate_fn(samples)
        finally:
            torch_worker._worker_info = None

    def _fetch(self, indices: Any, singly: bool, alive: Callable[[Any], None]) -> Any:
        dataset, batched = self.definition.dataset, self.definition.batched
        many = getattr(dataset, "__getitems__", None) if batched else None
        if many and not singly:
            alive(indices[:_NAMED])
            return many(indices)
        samples: list[Any] = []
        for index in indices if batched else [indices]:
            alive(index)
            samples += many([index]) if many else [dataset[index]]
        return samples if batched else samples[0]


def _seed_all(seed: int) -> None:
    """Seed the generators that a dataset may use; torch.manual_seed would also queue a call for CUDA each time."""
    random.seed(seed)
    np.random.seed(seed >> 32)  # a list would cost ten times as much, and numpy would draw the same numbers as random
    torch.default_generator.manual_seed(seed)
