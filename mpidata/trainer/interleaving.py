"""Detect several iterators or threads that draw from one stream in turn: a resume may then lose a batch."""

from __future__ import annotations

import warnings
from threading import get_ident

__all__ = ["InterleavingCheck"]


class InterleavingCheck:
    """Warns once if one of them draws again after another one has drawn.

    A checkpoint counts a batch as used when the next one is drawn, whoever draws it.
    """

    def __init__(self) -> None:
        self._number = self._thread = -1  # of the last draw
        self._before: set[tuple[int, int]] = set()
        self._said = False

    def take(self, number: int) -> None:
        """Note that the pass of this number draws in the calling thread."""
        if number == self._number and get_ident() == self._thread:  # the usual case, which must be fast
            return
        last, who = (self._number, self._thread), (number, get_ident())
        self._number, self._thread = who
        if who in self._before and not self._said:
            self._said = True
            warnings.warn(
                "Several iterators or threads draw from this stream in turn. A checkpoint between them may count a "
                "batch as used that was not trained on, and a run that resumes from it loses this batch. Draw with one "
                "iterator in one thread, each batch after the step on the previous one. For steps on more samples, use "
                "a larger batch_size.",
                stacklevel=3,
            )
        self._before.add(last)
