"""Calls of MPI during which the receive thread makes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["alone", "hold_by"]

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
