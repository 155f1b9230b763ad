"""Which batches of loaders count as training steps if several datasets are iterated at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["Turn", "Turns"]


class Turns:
    """Of the open iterations, the first one counts its batches; a checkpoint may be taken before each.

    Thus the batches of one step, from datasets that are iterated side by side, are in the same checkpoint, and those of
    a validation within the loop do not count. A known validation counts only if no other iteration is open.

    Parameters
    ----------
    count : callable
        Counts a batch; may take a checkpoint. False: not counted, because something else came first.
    drawing : callable, optional
        Gets the turn of each batch that is about to be returned.
    same_call : callable, optional
        Gets the text of each call, before anything else is done; may raise.

    Attributes
    ----------
    given, samples : int
        Number of batches returned by all iterations, and of the samples in them.
    in_epoch : bool
        Whether the last started iteration, of those that all trainers make together, has not ended; one that is left
        by `break` never ends.
    left : callable
        Returns the number of remaining rows of that iteration.
    """

    def __init__(
        self,
        count: Callable[[], object],
        drawing: Callable[[Turn], object] = lambda turn: None,
        same_call: Callable[[str], object] = lambda call: None,
    ) -> None:
        self.drawing, self.same_call = drawing, same_call
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
        place: Callable[[], str] = lambda: "a batch",
    ) -> Turn:
        """Start an iteration, which lasts as long as the returned object exists; `together`: of all trainers.

        `of`: its dataset; `validates`: it is a known validation; `left` returns the number of remaining rows, `place`
        which batch is next, as text.
        """
        self.same_call(f"a loop from {place()}")
        turn = Turn(self, together, of, validates, place)
        self._open.add(turn)
        self._is_first(turn)
        if together:
            self.in_epoch, self.left = True, left
        return turn

    def count(self, turn: Turn) -> bool:
        """Count a batch of an iteration, if it is its turn; False if something else is first."""
        return not self._is_first(turn) or self._count() is not False

    def _is_first(self, turn: Turn) -> bool:
        first = self._first()
        if first is None or (first.over and first is not turn) or (first.validates and not turn.validates):
            self._first = weakref.ref(turn)
        return self._first() is turn

    def is_computing(self) -> bool:
        """Whether the script is within a loop and works on the last batch; thread-safe."""
        turns = [turn for turn in tuple(self._open) if not turn.over]
        return bool(turns) and not any(turn.waits for turn in turns)


class Turn:
    """One iteration.

    Attributes
    ----------
    waits : bool
        Whether the script waits for one of its batches.
    over : bool
        Whether it has ended.
    of : object
        Its dataset; None if that does not matter.
    validates : bool
        Whether it is a known validation.
    """

    def __init__(
        self,
        turns: Turns,
        together: bool,
        of: Any = None,
        validates: bool = False,
        place: Callable[[], str] = lambda: "a batch",
    ) -> None:
        self.waits = False
        self.over = False
        self.of, self.validates = of, validates
        self._turns = turns
        self._together, self._place = together, place

    def next(self) -> None:
        """Report that a batch is about to be returned; all earlier ones are in use or done."""
        self._turns.same_call(self._place())
        self._turns.drawing(self)
        self.waits = True
        while not self._turns.count(self):
            self._turns.drawing(self)

    def given(self, samples: int = 0) -> None:
        """Report that the batch is returned, with its number of samples."""
        self.waits = False
        self._turns.given += 1
        self._turns.samples += samples

    def end(self) -> None:
        """Report that there is no further batch."""
        self.waits, self.over = False, True
        if self._together:
            self._turns.in_epoch = False
