"""What takes the place of the library in a forked child, which lacks the threads that may have held its locks."""

from __future__ import annotations

from typing import NoReturn

from mpidata.errors import StreamError

__all__ = ["ForkedLibrary", "forked_error"]


class ForkedLibrary:
    """Raises StreamError for each function of the library."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse."""
        raise forked_error()


def forked_error() -> StreamError:
    """Make the error of who uses a stream in a forked child."""
    return StreamError("The stream cannot be used in a forked process: MPI survives no fork. Use it in the parent.")
