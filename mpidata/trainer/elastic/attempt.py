"""What the trainers do together: operations, an agreement, and a communicator without dead trainers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mpidata.errors import StreamError
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.waiting import alone, free, wait

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Attempt", "agree", "and_all", "come_together", "split", "unlike_calls"]


class Attempt:
    """Operations in a communicator, which are completed together.

    Parameters
    ----------
    communicator : mpi4py.MPI.Intracomm
        The ranks that take part. If one has died, the communicator is revoked, so that no rank waits in it any more.
    report : callable
        Called once per second with the length of a long wait in seconds, and with 0 at its end.
    """

    def __init__(self, communicator: MPI.Intracomm, report: Callable[[float], object]) -> None:
        self.communicator = communicator
        self._report = report
        self._requests: list[MPI.Request] = []
        self._failed = False

    def post(self, call: Callable[..., MPI.Request], *arguments: Any) -> None:
        """Start an operation of the communicator; does nothing once one has failed."""
        from mpi4py import MPI

        if self._failed:
            return
        try:
            self._requests.append(call(*arguments))
        except MPI.Exception:
            self._fail()

    def wait(self) -> bool:
        """Wait until all operations have ended; False if any has failed."""
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


def unlike_calls() -> StreamError:
    """Make the error for operations that keep failing, because the trainers' calls do not match."""
    return StreamError(
        "The trainers cannot reduce: MPI fails repeatedly, although no trainer has died. Make the same calls on all "
        "trainers, with tensors of the same sizes. The other trainers' logs show where they were."
    )


def split(communicator: MPI.Intracomm, belongs: bool) -> MPI.Intracomm:
    """Make a communicator of the ranks that belong to it, in order; others get none. Collective; blocks."""
    from mpi4py import MPI

    return cast("MPI.Intracomm", communicator.Split(0 if belongs else MPI.UNDEFINED, communicator.Get_rank()))


def and_all(communicator: MPI.Intracomm, flag: int, report: Callable[[float], object], point: str = "and") -> int:
    """Return the bits of `flag` that all have set, the same on all living trainers. Collective; sleeps."""
    flags = np.array([flag], np.int32)
    with alone():
        request = communicator.Iagree(flags)
    reached(point)
    wait(request, report, testing=alone)  # an error only means that a trainer has died since
    return int(flags[0])


def agree(communicator: MPI.Intracomm, done: bool, report: Callable[[float], object]) -> tuple[bool, bool]:
    """Return whether all are done, and whether none has seen a death: the same on all living trainers.

    Collective; sleeps. `report` is that of `Attempt`.
    """
    communicator.Ack_failed()
    dead = communicator.Get_failed()
    flag = done | (dead.Get_size() == 0) << 1
    free(dead)
    flags = and_all(communicator, flag, report, "agree")
    return bool(flags & 1), bool(flags & 2)


def come_together(
    communicator: MPI.Intracomm, report: Callable[[float], object]
) -> tuple[MPI.Intracomm, MPI.Intracomm]:
    """Make two communicators of the living trainers; repeats if another one dies meanwhile. Like `agree`."""
    from mpi4py import MPI

    with alone():
        communicator.Revoke()
        made = 0
        while not made:
            living = communicator.Shrink()
            assert isinstance(living, MPI.Intracomm)
            communicator = living
            # No rank may revoke it after another death while others still create it: Open MPI 5.0 then crashes.
            and_all(living, 0, report)
            made = 1
            try:
                other = living.Dup()
            except MPI.Exception:
                made = 0
                living.Revoke()
            made = and_all(living, made, report)
    return communicator, other
