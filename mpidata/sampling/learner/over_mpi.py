"""Requests over libmpidata: to trainers for what they have published, and to the sampler on a learner."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mpidata.loading.over_mpi import parts_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check
from mpidata.sampling.learner.published import Contents
from mpidata.sampling.learner.remote_sampler import Answer, Question

__all__ = ["LEAVE", "AskedOverMpi", "AskingOverMpi", "LearnersOverMpi", "Opened"]

# Longest wait in the library, so that Python can handle signals.
_SLICE_S = 0.2

LEAVE = object()
"""Returned instead of a question if this rank is to leave."""


class Opened(Protocol):
    """The connection that has joined the job as its scheduler."""

    @property
    def library(self) -> Library:
        """The library, once the job is joined."""


class AskingOverMpi:
    """`Asking` for the scheduler. Only for its thread; no method blocks.

    Parameters
    ----------
    scheduler : Opened
        May join the job later.
    """

    def __init__(self, scheduler: Opened) -> None:
        self._scheduler = scheduler

    def ask_published(self, version: int) -> None:
        """Ask the trainers for what they have published, if it is newer than this version."""
        library = self._scheduler.library
        check(library, library.mpidata_scheduler_ask_published(version))

    def published(self) -> tuple[int, memoryview] | None | bool:
        """Take the answer: version and contents, None if nothing is newer, False if none has arrived."""
        library, taken = self._scheduler.library, structures.Taken()
        status = library.mpidata_scheduler_published(ctypes.byref(taken))
        if status == constants.ERR_AGAIN:
            return False
        check(library, status)
        (contents,) = parts_of(taken, library)
        return (taken.number, contents) if taken.kind == constants.PUBLISHED_NEWER else None


class LearnersOverMpi:
    """`Learners` for the scheduler. Only for its thread; no method blocks.

    Parameters
    ----------
    scheduler : Opened
        May join the job later.
    """

    def __init__(self, scheduler: Opened) -> None:
        self._scheduler = scheduler
        self._kept: list[_Parts] = []  # of questions being sent

    def teach(self, number: int, question: Question) -> None:
        """Send a question with this number to the learner that serves."""
        contents = question.contents
        head = pickle.dumps((question.what, question.arguments, contents.version if contents else 0))
        parts = _Parts([head, contents.memory] if contents else [head])
        library = self._scheduler.library
        status = library.mpidata_scheduler_teach(number, len(parts), parts.addresses, parts.sizes)
        self._kept.append(parts)
        if status != constants.ERR_AGAIN:  # else the learner is lost, and the next one receives the question
            check(library, status)

    def learnt(self) -> tuple[int, int, Answer] | None:
        """Take an answer: learner, number of the question, answer; None if there is none."""
        library, taken = self._scheduler.library, structures.Taken()
        status = library.mpidata_scheduler_learnt(ctypes.byref(taken))
        if status == constants.ERR_AGAIN:
            return None
        check(library, status)
        (answer,) = parts_of(taken, library)
        if taken.number:
            self._kept.clear()  # the learner has received all that was sent before
        return taken.peer, taken.number, Answer(*pickle.loads(answer))


class AskedOverMpi:
    """The scheduler's questions to this rank. Not thread-safe.

    Parameters
    ----------
    library : Library
        The library, opened as a learner.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._asked: dict[int, int] = {}  # by number: where to send the answer
        self._kept: dict[int, _Parts] = {}
        self._tickets = 0

    def next(self, timeout_s: float) -> tuple[int, Question] | object | None:
        """Take the next question and its number: None if none arrives in time, LEAVE if this rank is to leave."""
        taken = structures.Taken()
        status = self._library.mpidata_loader_next(ctypes.byref(taken), min(timeout_s, _SLICE_S))
        if status in (constants.ERR_AGAIN, constants.END):
            return None if status == constants.ERR_AGAIN else LEAVE
        check(self._library, status)
        head, *contents = parts_of(taken, self._library)
        what, arguments, version = pickle.loads(head)
        self._asked[taken.number] = taken.peer
        return taken.number, Question(what, arguments, Contents(version, contents[0]) if contents else None)

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a question."""
        parts, to = _Parts([pickle.dumps(tuple(answer))]), structures.Taken(peer=self._asked.pop(number), number=number)
        self._tickets += 1
        self._kept[self._tickets] = parts
        given = ctypes.byref(to), 0, len(parts), parts.addresses, parts.sizes, self._tickets
        check(self._library, self._library.mpidata_loader_answer(*given))
        ticket = ctypes.c_int64()
        while self._library.mpidata_loader_sent(ctypes.byref(ticket)) == constants.SUCCESS:
            del self._kept[ticket.value]

    def works_at(self, what: str) -> None:
        """Note what this rank does now, in case it dies."""
        self._library.mpidata_beat_at(what.encode())

    def close(self) -> None:
        """Leave the job in order, after all answers have been sent."""
        check(self._library, self._library.mpidata_loader_close())
        self._kept.clear()


class _Parts:
    """Parts of a parcel, which stay in place as long as this object exists."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._arrays = [np.frombuffer(part, np.uint8) for part in parts]
        self.addresses = (ctypes.c_void_p * len(parts))(*(array.ctypes.data for array in self._arrays))
        self.sizes = (ctypes.c_int64 * len(parts))(*(array.nbytes for array in self._arrays))

    def __len__(self) -> int:
        return len(self._arrays)
