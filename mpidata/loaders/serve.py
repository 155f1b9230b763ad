"""What a loader does all its life: take requests, and work on them one piece at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mpidata.errors import StreamError
from mpidata.loading.transport import Closed, Request, Requests

__all__ = ["Worker", "refuse_here", "serve"]

# Longest time in the transport while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2

_serving = False


class Worker(Protocol):
    """Does the work for one class of datasets."""

    def take(self, request: Request) -> bool:
        """Look at a request; at once. False where it is for another worker, too, or for it alone."""

    def work(self) -> bool:
        """Do one piece of what is to be done, a batch say; False where there is nothing."""


def serve(requests: Requests, workers: Sequence[Worker]) -> None:
    """Serve until the loader is to leave.

    Notes
    -----
    What has come is taken before the next piece of work begins, so that what is not wanted any more is not made.
    """
    global _serving
    _serving = True
    try:
        _serve(requests, workers)
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


def _serve(requests: Requests, workers: Sequence[Worker]) -> None:
    busy = False
    while True:
        request = requests.next(0.0 if busy else _SLICE_S)
        if isinstance(request, Closed):
            return
        if request is not None:
            any(worker.take(request) for worker in workers)
            busy = True
        else:
            busy = any([worker.work() for worker in workers])
