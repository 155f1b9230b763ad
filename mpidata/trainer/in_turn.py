"""Whether several iterators or threads draw from one stream in turn, of which a resume may lose a batch."""

from __future__ import annotations

import threading
import warnings

__all__ = ["InTurn"]


class InTurn:
    """Warns, once, where one draws again after another one has drawn.

    For a checkpoint a batch is used when the next one is drawn, whoever draws it.
    """

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._before: set[tuple[int, int]] = set()
        self._said = False

    def take(self, number: int) -> None:
        """Take note of who draws: the pass of this number, in the calling thread."""
        who = (number, threading.get_ident())
        if who == self._last or self._said:
            return
        if who in self._before:
            self._said = True
            warnings.warn(
                "Several iterators or threads draw from this stream in turn. A checkpoint that is taken between them "
                "counts a batch as used that may not have been trained on, and a run that is resumed from it loses it. "
                "Draw by one iterator, in one thread, each batch after the step on the one before. For a step "
                "on more samples give a larger batch_size.",
                stacklevel=3,
            )
        if self._last is not None:
            self._before.add(self._last)
        self._last = who
