"""Which batches of loaders count as steps of the training, where several datasets are iterated at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable

__all__ = ["Turn", "Turns"]


class Turns:
    """Of the iterations under way, the one that began first counts its batches; a checkpoint may be taken before each.

    So the batches of one step, of datasets that are iterated side by side, are in the same checkpoint, and those of a
    validation within the loop do not count.

    Parameters
    ----------
    count : callable
        Counts a batch; may take a checkpoint.
    """

    def __init__(self, count: Callable[[], None]) -> None:
        self._count = count
        self._first: weakref.ref[Turn] | None = None

    def begin(self) -> Turn:
        """Begin an iteration, which lasts as long as somebody has what is returned."""
        turn = Turn(self)
        if self._first is None or self._first() is None:
            self._first = weakref.ref(turn)
        return turn

    def count(self, turn: Turn) -> None:
        """Count a batch of an iteration, if it is its turn."""
        if self._first is None or self._first() is None:
            self._first = weakref.ref(turn)
        if self._first() is turn:
            self._count()


class Turn:
    """One iteration."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def next(self) -> None:
        """Say that a batch is about to be given out, all before it being in use or used."""
        self._turns.count(self)
