"""Calls of MPI during which the receive thread makes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["alone", "hold_by"]

_hold: Callable[[bool], object] = lambda on: None


def hold_by(hold: Callable[[bool], object]) -> None:
    """Have the receive thread kept out of MPI, and let in again, by this call."""
    global _hold
    _hold = hold


@contextmanager
def alone() -> Iterator[None]:
    """Make calls of MPI while the receive thread makes none.

    A message of MPIX_Comm_agree that comes while another thread is within an agreement reaches it with wrong values
    (Open MPI 5.0, era_cb_fn); and a death that one thread is taking in while another one makes a communicator crashes it.
    """
    _hold(True)
    try:
        yield
    finally:
        _hold(False)
