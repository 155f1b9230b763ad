"""Which orders of how many are to train all have heard of, and before which batch they are carried out."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from mpidata.loading.turns import Turn
from mpidata.trainer.elastic.meeting import MOST_DATASETS
from mpidata.trainer.elastic.shared_datasets import keys

__all__ = ["Orders"]


class Orders:
    """Orders, by their numbers.

    They are carried out before a batch of the dataset that the last step was of: there a script that resumes begins.

    Attributes
    ----------
    heard, done : int
        The newest that all have heard of, and that was carried out.
    """

    def __init__(self) -> None:
        self.heard = self.done = 0
        self._put_off = False
        self._furthest = np.zeros(MOST_DATASETS, np.int64)
        self._drawn: list[weakref.ref[Turn]] = []
        self._step_of: weakref.ref[object] | None = None

    def drew(self, turn: Turn) -> None:
        """Take in that a batch was drawn."""
        self._put_off = False
        if turn.of is not None:
            self._drawn.append(weakref.ref(turn))

    def stepped(self) -> None:
        """Take in that a step is made with what was drawn since the last one."""
        turns = [turn for turn in (ref() for ref in self._drawn) if turn is not None and not turn.over]
        if turns:
            self._step_of = weakref.ref(turns[0].of)
        self._drawn = []

    def hear(self, order: int, places: NDArray[np.int64]) -> None:
        """Take in the newest order that one of all knows, and where they are, shape (trainers, MOST_DATASETS, 2)."""
        self.heard = max(self.heard, order)
        self._furthest = keys(places).max(axis=0)

    def carried_out(self, order: int) -> None:
        """Take in that this was done."""
        self.done = max(self.done, order)
        self.heard = max(self.heard, order)

    @property
    def is_due(self) -> bool:
        """Whether one is to be carried out now."""
        return self.heard > self.done and not self._put_off

    def put_off(self, places: NDArray[np.int64] | None = None) -> None:
        """Take in that nothing could be done: all go on, or who is at the furthest of these places waits there."""
        if places is None:
            self._put_off = True
        else:
            self._furthest = keys(places)

    def is_of_step(self, turn: Turn) -> bool:
        """Whether a batch is of the dataset of the last step; of one that has joined, its first batch is."""
        if self._step_of is None:
            return self.done > 0 and turn.of is not None
        return turn.of is self._step_of()

    def has_reached(self, places: NDArray[np.int64]) -> bool:
        """Whether one that is at these places is where the furthest one was as all heard of the order."""
        return bool((keys(places) >= self._furthest).all())
