"""Waiting asleep for what the trainers do together, in which some may die; and making calls of MPI alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["alone", "free", "hold_by", "left", "wait"]

_YIELDS_S, _LONGEST_S, _TELLS_S, _ENDS_S = 2e-3, 5e-4, 1.0, 5.0

left: list[MPI.Request] = []
"""Requests that do not end, with their memory."""

_hold: Callable[[bool], object] = bool  # no thread to hold


def hold_by(hold: Callable[[bool], object]) -> None:
    """Have the receive thread kept out of MPI, and let in again, by this call."""
    global _hold
    _hold = hold


@contextmanager
def alone() -> Iterator[None]:
    """Make calls of MPI while the receive thread makes none.

    A message of an agreement that comes while another thread is within one reaches it garbled (Open MPI 5.0), those
    included of which MPIX_Comm_shrink is made. Pairs may be within others.
    """
    _hold(True)
    try:
        yield
    finally:
        _hold(False)


def free(group: MPI.Group) -> None:
    """Free a group, unless it is the predefined empty one."""
    from mpi4py import MPI

    if group != MPI.GROUP_EMPTY:
        group.Free()


def wait(
    request: MPI.Request,
    report: Callable[[float], object],
    is_broken: Callable[[], bool] = lambda: False,
    when_failed: Callable[[], object] = lambda: None,
    testing: Callable[[], AbstractContextManager[object]] = nullcontext,
    meanwhile: Callable[[], object] = lambda: None,
) -> bool:
    """Wait for a request asleep, but for the first moments; False where it has failed, as somebody has died.

    Of a death Open MPI's collectives give MPI_ERR_PROC_FAILED, MPI_ERR_REVOKED, now and then another error, and now and
    then nothing: so this looks itself once a second, and leaves a request that does not end though it cannot succeed.
    """
    from mpi4py import MPI

    begun, told_s, failed_s, ended = time.monotonic(), 0.0, math.inf, False
    while not ended:
        failed = False
        try:
            with testing():
                ended = request.Test()
        except MPI.Exception:
            failed, ended = True, request == MPI.REQUEST_NULL
        waited_s = time.monotonic() - begun
        if waited_s - told_s > _TELLS_S:
            told_s = waited_s
            report(waited_s)
            failed = failed or is_broken()
        if failed and failed_s == math.inf:
            failed_s = waited_s
            when_failed()
        if not ended and waited_s - failed_s > _ENDS_S:
            left.append(request)
            ended = True
        if not ended:
            meanwhile()
            time.sleep(0.0 if waited_s < _YIELDS_S else _LONGEST_S)
    if told_s:
        report(0.0)
    return failed_s == math.inf
