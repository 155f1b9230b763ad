"""Whether this process is a loader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from mpidata.errors import StreamError

__all__ = ["refuse_here", "serving"]

_serving = False


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Mark this process as a loader within this context."""
    global _serving
    _serving = True
    try:
        yield
    finally:
        _serving = False


def refuse_here() -> None:
    """Raise StreamError on a loader, where functions of trainers would wait forever."""
    if _serving:
        raise StreamError(
            "This rank is a loader, which cannot create a dataset of mpidata or a process group, but a module that it "
            'imported does so. Put that code under `if __name__ == "__main__":`, or put the function that creates '
            "the dataset into a separate module."
        )
