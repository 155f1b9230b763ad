"""Which batches of loaders count as steps of the training, where several datasets are iterated at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Turn", "Turns"]


class Turns:
    """Of the iterations under way, the one that began first counts its batches; a checkpoint may be taken before each.

    So the batches of one step, of datasets that are iterated side by side, are in the same checkpoint, and those of a
    validation within the loop do not count. One that is known for a validation counts only where nothing else goes on.

    Parameters
    ----------
    count : callable
        Counts a batch; may take a checkpoint. False: it has not, as something else came first.
    drawing : callable, optional
        Told of the turn of each batch that is about to be given out.

    Attributes
    ----------
    given, samples : int
        Batches of all iterations that were given out, and the samples in them.
    in_epoch : bool
        Whether the iteration that began last, of those that all trainers make together, has not come to its end; one
        that is left by `break` never does.
    left : callable
        Counts the rows that are left of that one.
    """

    def __init__(self, count: Callable[[], object], drawing: Callable[[Turn], object] = lambda turn: None) -> None:
        self.drawing = drawing
        self.given = self.samples = 0
        self.in_epoch = False
        self.left: Callable[[], int] = lambda: 0
        self._count = count
        self._first: Callable[[], Turn | None] = lambda: None
        self._open: weakref.WeakSet[Turn] = weakref.WeakSet()

    def begin(
        self,
        together: bool = False,
        of: Any = None,
        validates: bool = False,
        left: Callable[[], int] = lambda: 0,
    ) -> Turn:
        """Begin an iteration, which lasts as long as somebody has what is returned; `together`: of all trainers.

        `of` tells its dataset; `validates`: it is known for one of a validation; `left` counts the rows that are left.
        """
        turn = Turn(self, together, of, validates)
        self._open.add(turn)
        self._is_first(turn)
        if together:
            self.in_epoch, self.left = True, left
        return turn

    def count(self, turn: Turn) -> bool:
        """Count a batch of an iteration, if it is its turn; False where something else is first."""
        return not self._is_first(turn) or self._count() is not False

    def _is_first(self, turn: Turn) -> bool:
        first = self._first()
        if first is None or (first.over and first is not turn) or (first.validates and not turn.validates):
            self._first = weakref.ref(turn)
        return self._first() is turn

    def is_computing(self) -> bool:
        """Whether the script is within a loop, with the batch that came last; may be called from any thread."""
        turns = [turn for turn in tuple(self._open) if not turn.over]
        return bool(turns) and not any(turn.waits for turn in turns)


class Turn:
    """One iteration.

    Attributes
    ----------
    waits : bool
        Whether the script waits for a batch of it.
    over : bool
        Whether it has come to its end.
    of : object
        Of its dataset; None where that does not matter.
    validates : bool
        Whether it is known for one of a validation.
    """

    def __init__(self, turns: Turns, together: bool, of: Any = None, validates: bool = False) -> None:
        self.waits = False
        self.over = False
        self.of, self.validates = of, validates
        self._turns = turns
        self._together = together

    def next(self) -> None:
        """Say that a batch is about to be given out, all before it being in use or used."""
        self._turns.drawing(self)
        self.waits = True
        while not self._turns.count(self):
            self._turns.drawing(self)

    def given(self, samples: int = 0) -> None:
        """Say that it is given out now, with so many samples."""
        self.waits = False
        self._turns.given += 1
        self._turns.samples += samples

    def end(self) -> None:
        """Say that there is no further batch."""
        self.waits, self.over = False, True
        if self._together:
            self._turns.in_epoch = False
