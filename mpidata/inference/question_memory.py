"""Memory for small single questions, which each of them reuses."""

from __future__ import annotations

import functools
import sys

import numpy as np

from mpidata.inference.questions import Question, arrays_in, read_shape

__all__ = ["Place"]

_BYTES = 16384
_MOST = 1024  # descriptions that are recognized


class Place:
    """Memory that is lent to a question until it is answered.

    Attributes
    ----------
    address : int
        Of the memory.
    lent : Question or None
        The question in the memory.

    Notes
    -----
    A question, and the arrays over the memory, are made once per description, because that takes longer than copying
    the values. A function may have kept tensors of a question, although it should keep copies: the next question then
    uses new memory, and these tensors are not changed.
    """

    def __init__(self) -> None:
        self.lent: Question | None = None
        self._last: Question | None = None
        self._renew()

    def room(self) -> int:
        """Bytes for the next question; 0 while one is here."""
        if self.lent:
            return 0
        if self._last and sum(map(sys.getrefcount, self._last.arrays)) != self._references:
            self._renew()
        return _BYTES

    def take(self, n_parts: int, end: int) -> Question:
        """Return the question that has arrived, laid out by `mpidata_parcel_copy`, with its first part up to `end`."""
        self.lent, self._references = self._known(bytes(self._view[:end]), n_parts)
        self._last = self.lent
        return self.lent

    def free(self) -> None:
        """Release the memory after the question was answered."""
        self.lent = None

    def _renew(self) -> None:
        memory = np.empty(_BYTES, np.uint8)
        self.address: int = memory.ctypes.data
        self._view = memory.data
        self._last = None
        self._known = functools.lru_cache(_MOST)(functools.partial(_known_in, self._view))


def _known_in(memory: memoryview, text: bytes, n_parts: int) -> tuple[Question, int]:
    """Return a question with this description, and the number of references to its arrays while nobody else has any."""
    offsets, sizes = np.frombuffer(text, np.int64, 2 * n_parts).reshape(2, -1).tolist()
    shape = read_shape(text[offsets[0] :])
    question = Question(-1, -1, shape, arrays_in(shape, memory, offsets, sizes))
    return question, sum(map(sys.getrefcount, question.arrays))
