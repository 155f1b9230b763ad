"""The stream as one of the datasets that the trainers share: spares join before one of its batches."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpidata.loading.turns import Turn, Turns
from mpidata.native.library import Library, check
from mpidata.trainer.elastic.change import Change, Place

if TYPE_CHECKING:
    from mpidata.trainer.elastic.members import Members

__all__ = ["SharedStream", "meet", "pack_trained", "take_trained"]

_MEETS_AGAIN_S = 0.02


class SharedStream:
    """The stream of a trainer; the library divides its samples again.

    Parameters
    ----------
    drawn : callable
        Returns the number of batches that were drawn.

    Notes
    -----
    For the thread of the training script.
    """

    def __init__(self, drawn: Callable[[], int]) -> None:
        self._drawn = drawn
        self._members: Members | None = None
        self._turn = Turn(Turns(lambda: None), together=False, of=self)
        self._between = False  # batches: no part of the next one is drawn

    def share(self, members: Members) -> None:
        """Meet spares from now on."""
        self._members = members
        members.share(self)

    def begin_draw(self) -> None:
        """Note that the next batch is wanted."""
        self._between = True

    def draw(self, call: Callable[[float], int], timeout_s: float) -> int:
        """Draw, and return a status code. If a meeting with spares is due, meet first: collective; sleeps."""
        if self._between and self._members is not None:
            self._members.drawing(self._turn)
        status = call(timeout_s)
        self._between = self._between and status != 0
        return status

    def place(self) -> Place:
        """Return the position of this trainer."""
        return 0, self._drawn()

    def lose(self, lost: dict[int, Place], change: Change) -> None:
        """Do nothing, because the library detects deaths itself."""

    @property
    def may_be_dealt_anew(self) -> bool:
        """Whether all that was drawn was trained on."""
        return self._members is None or self._members.drawn is None or self._members.drawn.is_empty

    def deal_anew(self, number: int, trainers: int) -> None:
        """Do nothing, because the library divides the samples."""


def meet(library: Library, members: Members) -> None:
    """Meet the other trainers when the stream ends, or when one has died for which they would wait."""
    over, before = ctypes.c_int(), members.generation
    check(library, library.mpidata_trainer_meet(ctypes.byref(over)))
    if members.meet(bool(over.value)):
        check(library, library.mpidata_trainer_met())
    elif members.generation == before:
        time.sleep(_MEETS_AGAIN_S)  # MPI will soon detect which trainer has died


def pack_trained(library: Library) -> bytes:
    """Pack what the trainers have trained on, for a trainer that joins."""
    numbers, n = ctypes.c_void_p(), ctypes.c_int64()
    check(library, library.mpidata_trainer_pack_trained(ctypes.byref(numbers), ctypes.byref(n)))
    return ctypes.string_at(numbers.value or 0, 8 * n.value)


def take_trained(library: Library, packed: bytes) -> None:
    """Take over what the trainers have trained on."""
    numbers: NDArray[np.int64] = np.frombuffer(packed, np.int64)
    check(library, library.mpidata_trainer_take_trained(numbers.ctypes.data, len(numbers)))
