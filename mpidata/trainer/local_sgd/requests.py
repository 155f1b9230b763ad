"""Requests for an average: a trainer sends a message to each other one, which finds it at its next step."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from mpidata.trainer.elastic.members import Members

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Asks"]

_TAG = 3


class Asks:
    """Requests averages, and checks whether others request them.

    Parameters
    ----------
    members : Members
        The trainers.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._communicator = members.communicator
        self._round = self._asked = 0  # number of averages so far, and the last one that others have requested
        self._sent: list[tuple[MPI.Request, object]] = []

    def ask(self, again: bool = False) -> None:
        """Request the next average from the others; `again`: the one in which this trainer waits. Does not block."""
        from mpi4py import MPI

        if not again:
            self._renew()
        number = np.array([self._round + 1], np.int64)
        for rank in set(range(self._communicator.Get_size())) - {self._communicator.Get_rank()}:
            with contextlib.suppress(MPI.Exception):  # it has died
                self._sent.append((self._communicator.Isend(number, rank, _TAG), number))

    def asked(self) -> bool:
        """Whether another trainer has requested the next average, or has died; does not block."""
        from mpi4py import MPI

        self._renew()
        number = np.zeros(1, np.int64)
        try:
            while self._communicator.Iprobe(MPI.ANY_SOURCE, _TAG):
                self._communicator.Recv(number, MPI.ANY_SOURCE, _TAG)
                self._asked = max(self._asked, int(number[0]))
        except MPI.Exception:
            return True
        return self._asked > self._round

    def averaged(self) -> None:
        """Note that there was an average."""
        from mpi4py import MPI

        if not self._renew():
            self._round += 1
        with contextlib.suppress(MPI.Exception):
            self._sent = [one for one in self._sent if not one[0].Test()]

    def _renew(self) -> bool:
        """Restart the count if the set of trainers has changed, as new ones do; return whether it has."""
        if self._communicator is self._members.communicator:
            return False
        self._communicator = self._members.communicator
        self._round = self._asked = 0
        return True
