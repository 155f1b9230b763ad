"""Batches of a dataset that all trainers share: what share=True has in the place of a DistributedSampler."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch.utils.data import DistributedSampler, Sampler, SequentialSampler

from mpidata.datasets.epochs.shares import Shares
from mpidata.loading.permutation import Permutation

__all__ = ["ShareBatches", "ShareSampler"]


class ShareBatches(Sampler[list[int]]):
    """The batches of indices of one trainer.

    Parameters
    ----------
    n : int
        Length of the dataset.
    batch_size : int
        Indices in a batch of one trainer.
    trainer, trainers : int
        Number of this trainer, and how many there are.
    shuffle : bool
        Permute each epoch, as opposed to going through the dataset in order.
    drop_last : bool
        Leave out what does not fill a batch on all trainers.
    now : callable
        Gives the seed, and the epoch that is to begin next.
    index_pass : callable
        Begins a pass in which only indices are given out.
    set_epoch : callable
        That of the DataLoader; transformers calls it here if it skips batches.

    Attributes
    ----------
    even_batches : bool
        Fill the last batches up to one size on all trainers; accelerate's name, which sets it.
    """

    def __init__(
        self,
        n: int,
        batch_size: int,
        trainer: int,
        trainers: int,
        shuffle: bool,
        drop_last: bool,
        now: Callable[[], tuple[int, int]],
        index_pass: Callable[[], Iterator[list[int]]],
        set_epoch: Callable[[int], None],
    ) -> None:
        self._now, self._index_pass, self.set_epoch = now, index_pass, set_epoch
        self.even_batches = False
        self._n, self._size, self._trainer, self._shuffle = n, batch_size, trainer, shuffle
        self._shares = Shares(n, batch_size, trainers, drop_last)

    def __len__(self) -> int:
        """Count this trainer's batches in an epoch: the same on all."""
        return self._shares.batches

    def __iter__(self) -> Iterator[list[int]]:
        """Begin the next epoch, for who reads the samples without the DataLoader."""
        return self._index_pass()

    def next_batches(self) -> Iterator[list[int]]:
        """Go through the epoch that is to begin next, without beginning it."""
        return self.batches(*self._now(), 0)

    def count(self) -> int:
        """Count this trainer's indices in an epoch."""
        last = self._shares.batches - 1
        return last * self._size + len(self._places(last)) if last >= 0 else 0

    def remainder(self) -> int:
        """Count the indices of the last batches of all trainers."""
        return self._shares.last if self._shares.batches else 0

    def batches(self, seed: int, epoch: int, first: int) -> Iterator[list[int]]:
        """Go through an epoch, from a batch on."""
        permutation = Permutation(self._n, seed, epoch) if self._shuffle else None
        for batch in range(first, self._shares.batches):
            places = self._places(batch)
            yield places if permutation is None else permutation.rows(np.array(places, np.int64)).tolist()

    def _places(self, batch: int) -> list[int]:
        if self.even_batches:
            return self._shares.even_places(self._trainer, batch)
        return list(self._shares.places(self._trainer, batch))


class ShareSampler(DistributedSampler[Any], SequentialSampler):
    """Tells frameworks that indices are dealt out to the processes already, so that they leave the DataLoader as it is.

    Sequential it is only for Lightning's `overfit_batches`, which otherwise makes a DataLoader with a sequential one.

    Parameters
    ----------
    batches : ShareBatches
        Of this trainer.
    set_epoch : callable
        That of the DataLoader.
    """

    def __init__(self, batches: ShareBatches, set_epoch: Callable[[int], None]) -> None:
        self._batches, self._set_epoch = batches, set_epoch

    def __iter__(self) -> Iterator[Any]:
        """Go through the indices of the batches."""
        return itertools.chain.from_iterable(self._batches.next_batches())

    def __len__(self) -> int:
        """Count the indices of this trainer."""
        return self._batches.count()

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration."""
        self._set_epoch(epoch)
