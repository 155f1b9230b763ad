"""Losses by simulation in a replica: those of a batch count once, whichever rank reports them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpidata.native import structures
from mpidata.native.library import Library
from mpidata.sampling.losses.reporter import LossReporter
from mpidata.sampling.losses.sums import Sums, of_samples
from mpidata.trainer.replica.records import Word

__all__ = ["FirstLossReporter", "MateLossReporter"]

_KEPT = 1024
"""Number of batches for which the first rank remembers which rank reported their losses."""


class FirstLossReporter(LossReporter):
    """The losses of the first rank, which also takes those of its mates.

    Parameters
    ----------
    library, simulations
        As in `LossReporter`.
    batch : callable
        Returns the number of the last batch.
    """

    def __init__(self, library: Library, simulations: int, batch: Callable[[], int]) -> None:
        super().__init__(library, simulations)
        self._batch = batch
        self._told: dict[int, int] = {}

    def take(self, batch: Mapping[str, Any], values: Any) -> int:
        """Take the losses of a batch."""
        sums = of_samples(*self._checked(batch, values))
        return self._add(sums) if self._counts(0, self._batch()) else 0

    def take_from(self, rank: int, batch: int, packed: bytes) -> None:
        """Take the losses that a mate reported."""
        if self._counts(rank, batch):
            self._add(np.frombuffer(packed, structures.LOSSES).copy())

    def _counts(self, rank: int, batch: int) -> bool:
        """Whether this rank was the first to report losses of a batch: then its losses count."""
        with self._lock:
            if len(self._told) > _KEPT:
                self._told.pop(next(iter(self._told)))
            return self._told.setdefault(batch, rank) == rank


class MateLossReporter(LossReporter):
    """The losses of a mate, which sends them to the first rank; parameters as in `FirstLossReporter`, and `say`."""

    def __init__(self, library: Library, simulations: int, batch: Callable[[], int], say: Callable[..., None]) -> None:
        super().__init__(library, simulations)
        self._batch, self._say = batch, say

    def take(self, batch: Mapping[str, Any], values: Any) -> int:
        """Take the losses of a batch."""
        sums: Sums = of_samples(*self._checked(batch, values))
        self._say(Word.LOSSES, self._batch(), sums.tobytes())
        return 0
