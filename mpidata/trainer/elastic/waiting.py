"""Waiting asleep for what the trainers do together, in which some may die."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["free", "left", "wait"]

_YIELDS_S, _LONGEST_S, _TELLS_S, _ENDS_S = 2e-3, 5e-4, 1.0, 5.0

left: list[MPI.Request] = []
"""Requests that do not end, with their memory."""


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
            time.sleep(0.0 if waited_s < _YIELDS_S else _LONGEST_S)
    if told_s:
        report(0.0)
    return failed_s == math.inf
