"""Questions over libmpidata, which takes and answers them as a loader does its requests."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from mpidata.inference.questions import Question, Shape, read_shape
from mpidata.loading.over_mpi import parts_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check

__all__ = ["Asked", "LEAVE"]

# Longest time in the library while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2
_SHAPES = 1024  # that are known again

LEAVE = object()
"""In place of a question: this rank is to leave."""


class Asked:
    """What solvers ask this rank.

    Parameters
    ----------
    library : Library
        Opened as an inference rank.

    Notes
    -----
    For one thread.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._shapes: dict[bytes, Shape] = {}
        self._kept: dict[int, Any] = {}
        self._tickets = 0
        self._ticket = ctypes.c_int64()
        self._taken, self._to = structures.Taken(), structures.Taken(kind=constants.PARCEL_QUESTION)
        self._places: dict[int, tuple[ctypes.Array[Any], ctypes.Array[Any]]] = {}  # by number of parts

    def next(self, timeout_s: float) -> Question | object | None:
        """Take the next question: None if none came in time, LEAVE if this rank is to leave. Sleeps while it waits."""
        taken = self._taken
        status = self._library.mpidata_loader_next(ctypes.byref(taken), min(timeout_s, _SLICE_S))
        if status == constants.ERR_AGAIN:
            return None
        if status == constants.END:
            return LEAVE
        check(self._library, status)
        parts = parts_of(taken, self._library)
        return Question(taken.peer, taken.number, self._shape(bytes(parts[0])), parts)

    def answer(self, question: Question, version: int, outputs: Sequence[torch.Tensor]) -> None:
        """Answer a question: the tensors are contiguous, and stay as they are until the answer has left."""
        count = 1 + len(outputs)
        head = ctypes.c_int64(version)
        if count not in self._places:
            self._places[count] = (ctypes.c_void_p * count)(), (ctypes.c_int64 * count)()
        addresses, sizes = self._places[count]  # which the library copies
        addresses[:] = [ctypes.addressof(head), *[tensor.data_ptr() for tensor in outputs]]
        sizes[:] = [ctypes.sizeof(head), *[tensor.nbytes for tensor in outputs]]
        to = self._to
        to.peer, to.number = question.peer, question.number
        self._tickets += 1
        self._kept[self._tickets] = head, outputs
        library = self._library
        check(library, library.mpidata_loader_answer(ctypes.byref(to), 0, count, addresses, sizes, self._tickets))
        self._let_go()

    def close(self) -> None:
        """Leave the job in order, when all answers have left."""
        check(self._library, self._library.mpidata_loader_close())
        self._kept.clear()

    def _shape(self, text: bytes) -> Shape:
        known = self._shapes.get(text)
        if known is None:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            known = self._shapes[text] = read_shape(text)
        return known

    def _let_go(self) -> None:
        while self._library.mpidata_loader_sent(ctypes.byref(self._ticket)) == constants.SUCCESS:
            del self._kept[self._ticket.value]
