"""Sleep until operations of all trainers end, although some may die; and call MPI from one thread alone."""

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
"""Requests that never end; this keeps their memory."""

_hold: Callable[[bool], object] = bool  # no thread to hold


def hold_by(hold: Callable[[bool], object]) -> None:
    """Set the callable that keeps the receive thread out of MPI, and lets it in again."""
    global _hold
    _hold = hold


@contextmanager
def alone() -> Iterator[None]:
    """Call MPI while the receive thread does not.

    Open MPI 5.0 garbles a message of an agreement, also of those within MPIX_Comm_shrink, if it arrives while another
    thread is in such a call. Contexts may be nested.
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
    """Wait for a request, asleep after the first moments; False if it failed because a rank has died.

    After a death Open MPI's collectives return MPI_ERR_PROC_FAILED, MPI_ERR_REVOKED, sometimes another error, and
    sometimes nothing: so this checks once per second, and abandons a request that does not end but cannot succeed.
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
