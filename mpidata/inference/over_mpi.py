"""Questions over libmpidata, which takes and answers them as a loader does its requests."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import torch

from mpidata.inference.questions import Question, Shape, read_shape
from mpidata.loading.over_mpi import memory_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check

__all__ = ["Asked", "LEAVE"]

# Longest time in the library while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2
_SHAPES = 1024  # that are known again
# It is looked which answers have left behind one of more bytes, or when so many are kept.
_SMALL, _KEPT = 16384, 32

LEAVE = object()
"""In place of a question: this rank is to leave."""


class Asked:
    """What solvers ask this rank.

    Parameters
    ----------
    library : Library
        Opened as an inference rank.

    Attributes
    ----------
    more : bool
        Whether another question waits behind the one that was taken last.

    Notes
    -----
    For one thread. What it does for each question is on the way of a solver that waits.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._shapes: dict[bytes, Shape] = {}
        self._kept: dict[int, Any] = {}
        self._tickets = 0
        self._ticket = ctypes.c_int64()
        self._taken, self._to = structures.Taken(), structures.Taken(kind=constants.PARCEL_QUESTION)
        self._next = functools.partial(library.mpidata_loader_next, ctypes.byref(self._taken))
        self._answer = functools.partial(library.mpidata_loader_answer, ctypes.byref(self._to), 0)
        self._places: dict[int, tuple[ctypes.Array[Any], ctypes.Array[Any]]] = {}  # by number of parts
        self._head = ctypes.c_int64(-1)
        self.more = False

    def next(self, timeout_s: float) -> Question | object | None:
        """Take the next question: None if none came in time, LEAVE if this rank is to leave. Sleeps while it waits."""
        status = self._next(min(timeout_s, _SLICE_S))
        if status:
            return self._none(status)
        taken = self._taken
        self.more = taken.more != 0
        count = taken.n_parts
        offsets, sizes = taken.offsets[:count], taken.sizes[:count]
        memory = memory_of(taken, self._library)
        return Question(taken.peer, taken.number, self._shape(bytes(memory[: sizes[0]])), memory, offsets, sizes)

    def answer(self, question: Question, version: int, outputs: Sequence[torch.Tensor]) -> None:
        """Answer a question: the tensors are contiguous, and stay as they are until the answer has left."""
        if version != self._head.value:
            self._head = ctypes.c_int64(version)
        count = 1 + len(outputs)
        addresses, sizes = self._places.get(count) or self._new_places(count)  # which the library copies
        addresses[0] = ctypes.addressof(self._head)
        n_bytes = 0
        for part, tensor in enumerate(outputs, 1):
            addresses[part], sizes[part] = tensor.data_ptr(), tensor.nbytes
            n_bytes += tensor.nbytes
        to = self._to
        to.peer, to.number = question.peer, question.number
        self._tickets = ticket = self._tickets + 1
        self._kept[ticket] = self._head, outputs
        check(self._library, self._answer(count, addresses, sizes, ticket))
        if n_bytes > _SMALL or len(self._kept) > _KEPT:
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

    def _none(self, status: int) -> object | None:
        self._let_go()
        self.more = False
        if status == constants.ERR_AGAIN:
            return None
        if status == constants.END:
            return LEAVE
        check(self._library, status)
        return None

    def _new_places(self, count: int) -> tuple[ctypes.Array[Any], ctypes.Array[Any]]:
        places = (ctypes.c_void_p * count)(), (ctypes.c_int64 * count)()
        places[1][0] = ctypes.sizeof(self._head)
        self._places[count] = places
        return places

    def _let_go(self) -> None:
        while self._library.mpidata_loader_sent(ctypes.byref(self._ticket)) == constants.SUCCESS:
            del self._kept[self._ticket.value]
