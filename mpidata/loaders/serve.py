"""What a loader does all its life: take requests, and work on them one piece at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mpidata.loading import here
from mpidata.loading.transport import Closed, Request, Requests

__all__ = ["Worker", "serve"]

# Longest time in the transport while it waits, so that Python gets to handle signals.
_SLICE_S = 0.2


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
    with here.serving():
        _serve(requests, workers)


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
