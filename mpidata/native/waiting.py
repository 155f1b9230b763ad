"""Waiting for MPI without spinning."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["wait"]


def wait(request: MPI.Request, longest_s: float = 0.002, beat: Callable[[], object] | None = None) -> None:
    """Wait for an MPI request asleep: MPI's own waits spin.

    Parameters
    ----------
    request : mpi4py.MPI.Request
        The request, for which other ranks may take long.
    longest_s : float
        Longest time between two tests of the request, seconds.
    beat : callable, optional
        Called at each test, to report that this rank is alive.
    """
    pause = 2e-5
    while not request.Test():
        if beat is not None:
            beat()
        time.sleep(pause)
        pause = min(1.5 * pause, longest_s)
