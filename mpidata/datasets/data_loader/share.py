"""Batches of a dataset that all trainers share: what share=True uses instead of a DistributedSampler."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch.utils.data import DistributedSampler, Sampler, SequentialSampler

from mpidata.datasets.epochs.share_assignment import Dealing
from mpidata.loading.permutation import Permutation

__all__ = ["ShareBatches", "ShareSampler"]


class ShareBatches(Sampler[list[int]]):
    """The batches of indices of one trainer.

    Parameters
    ----------
    n : int
        Length of the dataset.
    dealing : Dealing
        Of the dataset.
    shuffle : bool
        Permute each epoch instead of keeping the order of the dataset.
    now : callable
        Returns the seed and the next epoch.
    index_pass : callable
        Starts a pass that only returns indices.
    set_epoch : callable
        The DataLoader's method; transformers calls it here if it skips batches.

    Attributes
    ----------
    even_batches : bool
        Fill the last batches up to the same size on all trainers. accelerate sets it, hence the name.
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
        """Return the number of batches of each trainer in an epoch."""
        return self.dealing.batches(self._now()[1])

    def __iter__(self) -> Iterator[list[int]]:
        """Start the next epoch, for readers that do not use the DataLoader."""
        return self._index_pass()

    def next_batches(self) -> Iterator[list[int]]:
        """Return the batches of the next epoch without starting it."""
        return self.batches(*self._now(), 0)

    def count(self) -> int:
        """Return the number of this trainer's indices in an epoch without lost trainers."""
        dealing, shares = self.dealing, self.dealing.shares
        last = shares.batches - 1
        if last < 0:
            return 0
        of_last = shares.even_places if self.even_batches else shares.places
        return last * dealing.batch_size + len(of_last(dealing.number, last))

    def remainder(self) -> int:
        """Return the number of indices in the last batches of all trainers."""
        shares = self.dealing.shares
        return shares.last if shares.batches else 0

    def batches(self, seed: int, epoch: int, first: int) -> Iterator[list[int]]:
        """Return an epoch's batches from the `first` on, including batches that are appended during the iteration."""
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
    """The batches of an epoch, to which further ones may be appended."""

    def __init__(self, dealing: Dealing, epoch: int, first: int, rows: Callable[[int], list[int]]) -> None:
        self._dealing, self._epoch, self._next, self._rows = dealing, epoch, first, rows

    def __next__(self) -> list[int]:
        if self._next >= self._dealing.batches(self._epoch):
            raise StopIteration
        self._next += 1
        return self._rows(self._next - 1)


class ShareSampler(DistributedSampler[Any], SequentialSampler):
    """Shows frameworks that indices are already divided among the processes, so that they do not wrap the DataLoader.

    SequentialSampler is a base only for Lightning's `overfit_batches`, which otherwise makes a sequential DataLoader.

    Parameters
    ----------
    batches : ShareBatches
        Of this trainer.
    set_epoch : callable
        The DataLoader's method.
    """

    def __init__(self, batches: ShareBatches, set_epoch: Callable[[int], None]) -> None:
        self._batches, self._set_epoch = batches, set_epoch

    def __iter__(self) -> Iterator[Any]:
        """Return the indices of the batches."""
        return itertools.chain.from_iterable(self._batches.next_batches())

    def __len__(self) -> int:
        """Return the number of indices of this trainer."""
        return self._batches.count()

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration."""
        self._set_epoch(epoch)
