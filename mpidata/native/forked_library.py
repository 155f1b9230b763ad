"""Replacement of the library in a forked child, which lacks the threads that may hold its locks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import NoReturn

from mpidata.errors import StreamError

__all__ = ["ForkedLibrary", "forked_error", "when_forked"]


def when_forked(call: Callable[[], None]) -> None:
    """Call a method in each forked child, as long as its object exists."""
    method = weakref.WeakMethod(call)

    def in_child() -> None:
        bound = method()
        if bound is not None:
            bound()

    os.register_at_fork(after_in_child=in_child)


class ForkedLibrary:
    """Raises StreamError for each function of the library."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raise StreamError."""
        raise forked_error()


def forked_error() -> StreamError:
    """Return the error for uses of a stream in a forked child."""
    return StreamError("The stream cannot be used in a forked process: MPI survives no fork. Use it in the parent.")
