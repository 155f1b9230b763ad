"""Whether this process is a loader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mpidata.errors import StreamError

__all__ = ["refuse_here", "serving"]

_serving = False


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Be a loader within this context."""
    global _serving
    _serving = True
    try:
        yield
    finally:
        _serving = False


def refuse_here() -> None:
    """Raise StreamError on a loader, where what is of trainers would wait for ever."""
    if _serving:
        raise StreamError(
            "This is a loader, on which no dataset of mpidata can be made, nor a process group: a module that it has "
            'imported makes one. Put that under `if __name__ == "__main__":`, or the function that makes the '
            "dataset into a module of its own."
        )
