"""Batches of a dataset that all trainers share: what share=True has in the place of a DistributedSampler."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch.utils.data import DistributedSampler, Sampler, SequentialSampler

from mpidata.datasets.epochs.dealing import Dealing
from mpidata.loading.permutation import Permutation

__all__ = ["ShareBatches", "ShareSampler"]


class ShareBatches(Sampler[list[int]]):
    """The batches of indices of one trainer.

    Parameters
    ----------
    n : int
        Length of the dataset.
    dealing : Dealing
        Of it.
    shuffle : bool
        Permute each epoch, as opposed to going through the dataset in order.
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
        dealing: Dealing,
        shuffle: bool,
        now: Callable[[], tuple[int, int]],
        index_pass: Callable[[], Iterator[list[int]]],
        set_epoch: Callable[[int], None],
    ) -> None:
        self._now, self._index_pass, self.set_epoch = now, index_pass, set_epoch
        self.even_batches = False
        self._n, self._shuffle = n, shuffle
        self.dealing = dealing

    def __len__(self) -> int:
        """Count this trainer's batches in an epoch: the same on all."""
        return self.dealing.batches(self._now()[1])

    def __iter__(self) -> Iterator[list[int]]:
        """Begin the next epoch, for who reads the samples without the DataLoader."""
        return self._index_pass()

    def next_batches(self) -> Iterator[list[int]]:
        """Go through the epoch that is to begin next, without beginning it."""
        return self.batches(*self._now(), 0)

    def count(self) -> int:
        """Count this trainer's indices in an epoch in which nobody is lost."""
        dealing, shares = self.dealing, self.dealing.shares
        last = shares.batches - 1
        if last < 0:
            return 0
        of_last = shares.even_places if self.even_batches else shares.places
        return last * dealing.batch_size + len(of_last(dealing.number, last))

    def remainder(self) -> int:
        """Count the indices of the last batches of all trainers."""
        shares = self.dealing.shares
        return shares.last if shares.batches else 0

    def batches(self, seed: int, epoch: int, first: int) -> Iterator[list[int]]:
        """Go through an epoch, from a batch on; goes on where more come behind the last one."""
        permutation = Permutation(self._n, seed, epoch) if self._shuffle else None
        return _Batches(self.dealing, epoch, first, lambda batch: self._rows(permutation, epoch, batch))

    def _rows(self, permutation: Permutation | None, epoch: int, batch: int) -> list[int]:
        places = self._places(epoch, batch)
        return places if permutation is None else permutation.rows(np.array(places, np.int64)).tolist()

    def _places(self, epoch: int, batch: int) -> list[int]:
        if self.even_batches:
            return self.dealing.shares.even_places(self.dealing.number, batch)
        return list(itertools.chain.from_iterable(self.dealing.places(epoch, batch)))


class _Batches(Iterator[list[int]]):
    """The batches of an epoch, to which some may be added."""

    def __init__(self, dealing: Dealing, epoch: int, first: int, rows: Callable[[int], list[int]]) -> None:
        self._dealing, self._epoch, self._next, self._rows = dealing, epoch, first, rows

    def __next__(self) -> list[int]:
        if self._next >= self._dealing.batches(self._epoch):
            raise StopIteration
        self._next += 1
        return self._rows(self._next - 1)


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
