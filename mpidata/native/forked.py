"""What takes the place of the library in a forked child, which lacks the threads that may have held its locks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import NoReturn

from mpidata.errors import StreamError

__all__ = ["ForkedLibrary", "forked_error", "when_forked"]


def when_forked(call: Callable[[], None]) -> None:
    """Have a method called in each forked child, as long as its object lives."""
    method = weakref.WeakMethod(call)

    def in_child() -> None:
        bound = method()
        if bound is not None:
            bound()

    os.register_at_fork(after_in_child=in_child)


class ForkedLibrary:
    """Raises StreamError for each function of the library."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse."""
        raise forked_error()


def forked_error() -> StreamError:
    """Make the error of who uses a stream in a forked child."""
    return StreamError("The stream cannot be used in a forked process: MPI survives no fork. Use it in the parent.")
