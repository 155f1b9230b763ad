"""The datasets whose rows the trainers share, in the same order on all trainers."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError
from mpidata.trainer.elastic.change import Change, Shared
from mpidata.trainer.elastic.meeting import MOST_DATASETS

__all__ = ["SharedDatasets", "furthest", "keys"]


class SharedDatasets:
    """The datasets, by weak references."""

    def __init__(self) -> None:
        self._datasets: list[weakref.ref[Shared]] = []

    def __len__(self) -> int:
        """Return their number, including those that no longer exist."""
        return len(self._datasets)

    def add(self, dataset: Shared) -> None:
        """Add a dataset."""
        if len(self._datasets) == MOST_DATASETS:
            raise StreamError(
                f"With 'trainers.elastic' a script may create at most {MOST_DATASETS} datasets whose rows the trainers "
                "share. Create each once, before the loop."
            )
        self._datasets.append(weakref.ref(dataset))

    def places(self) -> NDArray[np.int64]:
        """Position of this trainer in each dataset, shape (MOST_DATASETS, 2); zeros if there is none."""
        own = np.zeros((MOST_DATASETS, 2), np.int64)
        for row, dataset in zip(own, (ref() for ref in self._datasets), strict=False):
            row[:] = (0, 0) if dataset is None else dataset.place()
        return own

    def at_end(self, ended: Shared, trained: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Position of this trainer in one dataset, and in the others at its last step; as `places`."""
        own, there = self.places(), np.array([ref() is ended for ref in self._datasets], bool)
        there = np.pad(there, (0, MOST_DATASETS - len(there)))
        before = np.zeros_like(own) if trained is None else trained[:MOST_DATASETS]
        return np.where(there[:, None], own, before)

    def lose(self, trained: Mapping[int, NDArray[np.int64]], change: Change) -> None:
        """Divide again what lost trainers had not trained on; `trained` has their positions by former number."""
        nowhere = np.zeros((MOST_DATASETS, 2), np.int64)
        for at, dataset in enumerate(ref() for ref in self._datasets):
            if dataset is None:
                continue
            places = {number: trained.get(number, nowhere)[at] for number in change.lost}
            dataset.lose({number: (int(epoch), int(had)) for number, (epoch, had) in places.items()}, change)

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether `deal_anew` may be called now."""
        return all(dataset.may_be_dealt_anew for dataset in self._alive())

    def deal_anew(self, number: int, trainers: int) -> None:
        """Divide the remaining rows among this number of trainers, which are all at the same position."""
        for dataset in self._alive():
            dataset.deal_anew(number, trainers)

    def _alive(self) -> list[Shared]:
        return [dataset for dataset in (ref() for ref in self._datasets) if dataset is not None]


def furthest(one: NDArray[np.int64], other: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the later of two positions in each dataset; the second, if given, may have more rows."""
    return one if other is None else np.where((keys(one) >= keys(other[: len(one)]))[:, None], one, other[: len(one)])


def keys(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert positions, shape (..., 2), to numbers in the same order."""
    return places[..., 0] << 32 | places[..., 1]
