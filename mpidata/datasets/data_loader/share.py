"""Batches of a dataset that all trainers share: what share=True has in the place of a DistributedSampler."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch.utils.data import DistributedSampler, Sampler

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
    """

    def __init__(
        self,
        n: int,
        batch_size: int,
        trainer: int,
        trainers: int,
        shuffle: bool,
        drop_last: bool,
        now: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:
        self._now = now
        self._n, self._size, self._trainer, self._shuffle = n, batch_size, trainer, shuffle
        self._shares = Shares(n, batch_size, trainers, drop_last)

    def __len__(self) -> int:
        """Count this trainer's batches in an epoch: the same on all."""
        return self._shares.batches

    def __iter__(self) -> Iterator[list[int]]:
        """Go through the epoch that is to begin next; for who draws batches without the DataLoader."""
        return self.batches(*self._now(), 0)

    def count(self) -> int:
        """Count this trainer's indices in an epoch."""
        last = self._shares.batches - 1
        return last * self._size + len(self._shares.places(self._trainer, last)) if last >= 0 else 0

    def batches(self, seed: int, epoch: int, first: int) -> Iterator[list[int]]:
        """Go through an epoch, from a batch on."""
        permutation = Permutation(self._n, seed, epoch) if self._shuffle else None
        for batch in range(first, self._shares.batches):
            places = self._shares.places(self._trainer, batch)
            if permutation is None:
                yield list(places)
            else:
                yield permutation.rows(np.arange(places.start, places.stop, dtype=np.int64)).tolist()


class ShareSampler(DistributedSampler[Any]):
    """Tells frameworks that indices are dealt out to the processes already, so that they leave the DataLoader as it is.

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
        return itertools.chain.from_iterable(self._batches)

    def __len__(self) -> int:
        """Count the indices of this trainer."""
        return self._batches.count()

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration."""
        self._set_epoch(epoch)
