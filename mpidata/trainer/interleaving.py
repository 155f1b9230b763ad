"""Whether several iterators or threads draw from one stream in turn, of which a resume may lose a batch."""

from __future__ import annotations

import warnings
from threading import get_ident

__all__ = ["InTurn"]


class InTurn:
    """Warns, once, where one draws again after another one has drawn.

    For a checkpoint a batch is used when the next one is drawn, whoever draws it.
    """

    def __init__(self) -> None:
        self._number = self._thread = -1  # of who drew last
        self._before: set[tuple[int, int]] = set()
        self._said = False

    def take(self, number: int) -> None:
        """Take note of who draws: the pass of this number, in the calling thread."""
        if number == self._number and get_ident() == self._thread:  # nearly always, so this must cost nothing
            return
        last, who = (self._number, self._thread), (number, get_ident())
        self._number, self._thread = who
        if who in self._before and not self._said:
            self._said = True
            warnings.warn(
                "Several iterators or threads draw from this stream in turn. A checkpoint that is taken between them "
                "counts a batch as used that may not have been trained on, and a run that is resumed from it loses it. "
                "Draw by one iterator, in one thread, each batch after the step on the one before. For a step "
                "on more samples give a larger batch_size.",
                stacklevel=3,
            )
        self._before.add(last)
