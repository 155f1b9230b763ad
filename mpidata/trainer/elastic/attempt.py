"""Operations that are begun together and brought to their end together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from mpidata.trainer.elastic.waiting import free, wait

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Attempt", "split"]


class Attempt:
    """Operations in a communicator, to be brought to their end together.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm
        Of those who take part. Where one of them has died, it is revoked, so that nobody waits in it any more.
    report : callable
        Told of long waits, in seconds, once a second, and of their ends: 0.
    """

    def __init__(self, communicator: MPI.Intracomm, report: Callable[[float], object]) -> None:
        self.communicator = communicator
        self._report = report
        self._requests: list[MPI.Request] = []
        self._failed = False

    def post(self, call: Callable[..., MPI.Request], *arguments: Any) -> None:
        """Begin an operation of the communicator; does nothing once one has failed."""
        from mpi4py import MPI

        if self._failed:
            return
        try:
            self._requests.append(call(*arguments))
        except MPI.Exception:
            self._fail()

    def wait(self) -> bool:
        """Wait until all have ended; False where any has failed."""
        ended = [wait(request, self._report, self._is_broken, self._fail) for request in self._requests]
        return all(ended) and not self._failed

    def _is_broken(self) -> bool:
        failed = self.communicator.Get_failed()
        broken = self.communicator.Is_revoked() or failed.Get_size() > 0
        free(failed)
        return broken

    def _fail(self) -> None:
        self._failed = True
        self.communicator.Revoke()


def split(communicator: MPI.Intracomm, belongs: bool) -> MPI.Intracomm:
    """Make a communicator of those that belong to it, in their order; of no use to the others. Collective; blocks."""
    from mpi4py import MPI

    return cast("MPI.Intracomm", communicator.Split(0 if belongs else MPI.UNDEFINED, communicator.Get_rank()))
