"""The main loop of a loader: takes requests, and works on them one piece at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mpidata.loading import loader_process
from mpidata.loading.transport import Closed, Request, Requests

__all__ = ["Worker", "serve"]

# Longest wait in the transport, so that Python can handle signals.
_SLICE_S = 0.2


class Worker(Protocol):
    """Does the work for one class of datasets."""

    def take(self, request: Request) -> bool:
        """Take a request; does not block. False if other workers must also see it."""

    def work(self) -> bool:
        """Do one piece of work, for example a batch; False if there is none."""


def serve(requests: Requests, workers: Sequence[Worker]) -> None:
    """Serve until the loader must leave.

    Notes
    -----
    All waiting requests are taken before the next piece of work starts, so that cancelled batches are not made.
    """
    with loader_process.serving():
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
