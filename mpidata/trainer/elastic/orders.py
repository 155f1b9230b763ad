"""Orders to change the number of trainers: which are known to all, and before which batch they are carried out."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from mpidata.loading.turns import Turn
from mpidata.trainer.elastic.meeting import MOST_DATASETS
from mpidata.trainer.elastic.shared_datasets import keys

__all__ = ["Orders"]


class Orders:
    """The orders, by number.

    They are carried out before a batch of the dataset of the last step, where a resumed script also starts.

    Attributes
    ----------
    heard, done : int
        The newest order that all know, and the newest that was carried out.
    """

    def __init__(self) -> None:
        self.heard = self.done = 0
        self._put_off = False
        self._furthest = np.zeros(MOST_DATASETS, np.int64)
        self._drawn: list[weakref.ref[Turn]] = []
        self._step_of: weakref.ref[object] | None = None

    def drew(self, turn: Turn) -> None:
        """Note that a batch was drawn."""
        self._put_off = False
        if turn.of is not None:
            self._drawn.append(weakref.ref(turn))

    def stepped(self) -> None:
        """Note that a step is made with what was drawn since the last one."""
        turns = [turn for turn in (ref() for ref in self._drawn) if turn is not None and not turn.over]
        if turns:
            self._step_of = weakref.ref(turns[0].of)
        self._drawn = []

    def hear(self, order: int, places: NDArray[np.int64]) -> None:
        """Note the newest order that any trainer knows, and all positions, shape (trainers, MOST_DATASETS, 2)."""
        self.heard = max(self.heard, order)
        self._furthest = keys(places).max(axis=0)

    def carried_out(self, order: int) -> None:
        """Note that an order was carried out."""
        self.done = max(self.done, order)
        self.heard = max(self.heard, order)

    @property
    def is_due(self) -> bool:
        """Whether an order must be carried out now."""
        return self.heard > self.done and not self._put_off

    def put_off(self, places: NDArray[np.int64] | None = None) -> None:
        """Note that nothing could be done: all continue, or the trainer at the furthest of these positions waits."""
        if places is None:
            self._put_off = True
        else:
            self._furthest = keys(places)

    def is_of_step(self, turn: Turn) -> bool:
        """Whether a batch is of the dataset of the last step; true for the first batch of a trainer that has joined."""
        if self._step_of is None:
            return self.done > 0 and turn.of is not None
        return turn.of is self._step_of()

    def has_reached(self, places: NDArray[np.int64]) -> bool:
        """Whether these positions are where the furthest trainer was when all learned of the order."""
        return bool((keys(places) >= self._furthest).all())
