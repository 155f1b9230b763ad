"""What the scheduler asks for a sampler, over libmpidata: what trainers have published."""

from __future__ import annotations

import ctypes
from typing import Protocol

from mpidata.loading.over_mpi import parts_of
from mpidata.native import constants, structures
from mpidata.native.library import Library, check

__all__ = ["AskingOverMpi", "Opened"]


class Opened(Protocol):
    """Who has joined the job as its scheduler."""

    @property
    def library(self) -> Library:
        """The library, once the job is joined."""


class AskingOverMpi:
    """`Asking`, of a scheduler. For its thread; nothing blocks.

    Parameters
    ----------
    scheduler : Opened
        May join the job later.
    """

    def __init__(self, scheduler: Opened) -> None:
        self._scheduler = scheduler

    def ask_published(self, version: int) -> None:
        """Ask the trainers for what is published, if that is newer than this version."""
        library = self._scheduler.library
        check(library, library.mpidata_scheduler_ask_published(version))

    def published(self) -> tuple[int, memoryview] | None | bool:
        """Take the answer: version and contents, None where nothing is newer; False: it has not come."""
        library, taken = self._scheduler.library, structures.Taken()
        status = library.mpidata_scheduler_published(ctypes.byref(taken))
        if status == constants.ERR_AGAIN:
            return False
        check(library, status)
        (contents,) = parts_of(taken, library)
        return (taken.number, contents) if taken.kind == constants.PUBLISHED_NEWER else None
