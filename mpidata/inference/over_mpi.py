"""Questions over libmpidata, which takes and answers them like requests to a loader."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from mpidata.inference.question_memory import Place
from mpidata.inference.questions import Question, arrays_in, read_shape
from mpidata.loading.over_mpi import memory_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check

__all__ = ["Asked", "LEAVE"]

# Longest wait within the library, so that Python can handle signals.
_SLICE_S = 0.2
_COPIED = -1  # the ticket of an answer that the library copies

LEAVE = object()
"""Returned instead of a question: this rank must leave."""


class _Answer(NamedTuple):
    """The parts of an answer, which the library reads from here: the version, and the outputs."""

    addresses: ctypes.Array[Any]
    sizes: ctypes.Array[Any]
    is_copied: bool


@functools.lru_cache(1024)
def _answer_of(output_bytes: tuple[int, ...]) -> _Answer:
    sizes = ctypes.sizeof(ctypes.c_int64), *output_bytes
    count = len(sizes)
    return _Answer((ctypes.c_void_p * count)(), (ctypes.c_int64 * count)(*sizes), sum(sizes) <= constants.PIECE_SMALL)


class Asked:
    """The questions of solvers to this rank.

    Parameters
    ----------
    library : Library
        Opened as an inference rank.

    Attributes
    ----------
    more : bool
        Whether another question waits after the last one taken.

    Notes
    -----
    For one thread. A solver waits during all work for its question.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._kept: dict[int, Any] = {}
        self._tickets = 0
        self._ticket = ctypes.c_int64()
        self._taken, self._to = structures.Taken(), structures.Taken(kind=constants.PARCEL_QUESTION)
        self._next = functools.partial(library.mpidata_loader_next_into, ctypes.byref(self._taken))
        self._answer = functools.partial(library.mpidata_loader_answer, ctypes.byref(self._to), 0)
        self._head = ctypes.c_int64(-1)
        self._place = Place()
        self.more = False

    def next(self, timeout_s: float) -> Question | object | None:
        """Take the next question; None if none arrived in time, LEAVE if this rank must leave. Sleeps meanwhile."""
        place = self._place
        room = place.room()  # may change the address
        status = self._next(place.address, room, min(timeout_s, _SLICE_S))
        if status:
            return self._none(status)
        taken = self._taken
        self.more = taken.more != 0
        if taken.parcel is None:
            question = place.take(taken.n_parts, taken.bytes)
            question.peer, question.number = taken.peer, taken.number
            return question
        count = taken.n_parts
        offsets, sizes = taken.offsets[:count], taken.sizes[:count]
        memory = memory_of(taken, self._library)
        shape = read_shape(bytes(memory[: sizes[0]]))
        return Question(taken.peer, taken.number, shape, arrays_in(shape, memory, offsets, sizes))

    def answer(self, question: Question, version: int, outputs: Sequence[torch.Tensor]) -> None:
        """Answer a question with contiguous tensors; large ones must not be changed until the answer has been sent."""
        if version != self._head.value:
            self._head = ctypes.c_int64(version)
        sent = _answer_of(question.shape.output_bytes)
        sent.addresses[0] = ctypes.addressof(self._head)
        for part, tensor in enumerate(outputs, 1):
            sent.addresses[part] = tensor.data_ptr()
        to = self._to
        to.peer, to.number = question.peer, question.number
        ticket = _COPIED
        if not sent.is_copied:
            self._tickets = ticket = self._tickets + 1
            self._kept[ticket] = self._head, outputs
        if status := self._answer(len(sent.sizes), sent.addresses, sent.sizes, ticket):
            check(self._library, status)
        if not sent.is_copied:
            self._let_go()
        if question is self._place.lent:
            self._place.free()

    def close(self) -> None:
        """Leave the job when all answers have been sent."""
        check(self._library, self._library.mpidata_loader_close())
        self._kept.clear()

    def _none(self, status: int) -> object | None:
        self._let_go()
        self.more = False
        if status == constants.ERR_AGAIN:
            return None
        if status == constants.END:
            return LEAVE
        check(self._library, status)
        return None

    def _let_go(self) -> None:
        while self._library.mpidata_loader_sent(ctypes.byref(self._ticket)) == constants.SUCCESS:
            del self._kept[self._ticket.value]
