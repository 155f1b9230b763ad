"""Messages between a trainer and the parameter servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpidata.errors import StreamError
from mpidata.servers.messages import NOBODY, AllRanks, Ask, Tag, pieces, read_pieces
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.waiting import wait

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.servers.part import Making, State

__all__ = ["Link"]

_REPORTS_S = 0.2


class Link:
    """The connection to the servers. All methods that wait sleep.

    Parameters
    ----------
    everyone : AllRanks
        The trainers, and the servers.
    report : callable
        Called periodically, and at the end, with the number of pushes of this trainer.

    Attributes
    ----------
    servers : int
        Number of servers.
    """

    def __init__(self, everyone: AllRanks, report: Callable[[int], object]) -> None:
        self._communicator, self._ranks, self._report = everyone.communicator, everyone.servers, report
        self.servers = len(self._ranks)
        self._pushes, self._reports_at = 0, 0.0
        self._sent: list[tuple[MPI.Request, Any]] = []

    @property
    def is_first(self) -> bool:
        """Whether this is trainer 0, which has the initial weights."""
        return self._communicator.Get_rank() == 0

    def make(self, making: Making, version: int, states: Sequence[State]) -> None:
        """Send each server what to keep; for trainer 0."""
        for rank, state in zip(self._ranks, states, strict=True):
            for piece in pieces((making, version, state)):
                self._send(piece, rank, Tag.MAKE)
        self._wait_for_sent()

    def join(self, digest: int) -> None:
        """Send server 0 the digest of this trainer's model."""
        self._ask(Ask.JOIN, digest)

    def push(self, gradients: Sequence[Any]) -> None:
        """Send each server the gradients of its part, as bytes; change them only after `wait_for_push`."""
        for rank, gradient in zip(self._ranks, gradients, strict=True):
            self._send(gradient, rank, Tag.PUSH)
            reached("push")
        self._pushes += 1
        if (now := time.monotonic()) >= self._reports_at:
            self._reports_at = now + _REPORTS_S
            self._report(self._pushes)

    def wait_for_push(self) -> None:
        """Wait until all pushes have been taken."""
        self._wait_for_sent()

    def pull(self, parts: Sequence[Any]) -> tuple[int, int]:
        """Get the weights; return their version, and by how many pushes this trainer is ahead of the slowest one."""
        from mpi4py import MPI

        came = [
            self._communicator.Irecv([part, MPI.BYTE], rank, Tag.PART)
            for rank, part in zip(self._ranks, parts, strict=True)
        ]
        self._ask(Ask.PULL, self._pushes)
        reached("pull")
        version, ahead, _ = self._go()
        for request in came:
            self._wait(request)
        return version, ahead

    def rows(self, table: int, wanted: Sequence[Any], dim: int) -> list[Any]:
        """Return rows of a table, float32, shape (rows, dim), from each server; `wanted` has their indices, int64."""
        from mpi4py import MPI

        came, requests = [], []
        for rank, rows in zip(self._ranks, wanted, strict=True):
            values = np.empty((len(rows), dim), np.float32)
            came.append(values)
            if len(rows):
                requests.append(self._communicator.Irecv([values, MPI.BYTE], rank, Tag.ROWS))
                self._send(np.concatenate([np.array([table], np.int64), rows]), rank, Tag.WANT)
        for request in requests:
            self._wait(request)
        return came

    def rest(self) -> None:
        """Let nobody wait for this trainer until it pulls or pushes again."""
        self._ask(Ask.REST, self._pushes)

    def settle(self) -> None:
        """Like `pause`, and wait until all pushes count."""
        self._ask(Ask.SETTLE, self._pushes)
        reached("settle")
        self._go()

    def pause(self) -> None:
        """Like `rest`, but this trainer will save when the others do."""
        self._ask(Ask.PAUSE, self._pushes)

    def absent(self, checkpoint: int) -> None:
        """Let the others take checkpoints up to this one without this trainer."""
        self._ask(Ask.ABSENT, self._pushes, checkpoint)

    def save(self, checkpoint: int, come_away: Callable[[], bool] = lambda: False) -> tuple[int, list[State]] | None:
        """Wait until all trainers reach a checkpoint; return the version and, on the first, each server's state.

        Returns None, on any of them, if it had to withdraw first: then call it again.
        """
        withdrawn = False

        def withdraw() -> None:
            nonlocal withdrawn
            if not withdrawn and come_away():
                withdrawn = True
                self._ask(Ask.WITHDRAW, self._pushes)

        self._ask(Ask.SAVE, self._pushes, checkpoint)
        version, _, saves = self._go(withdraw)
        if saves == NOBODY:
            return None
        own = saves == self._communicator.Get_rank()
        return version, [self._read(rank, Tag.STATE) for rank in self._ranks] if own else []

    def lost(self, trainer: int, place: Any) -> None:
        """Get, in `place`, the position of a dead trainer at its last push that counts; no later push counts."""
        came = self._communicator.Irecv(place, self._ranks[0], Tag.PLACE)
        self._ask(Ask.LOST, trainer)
        self._wait(came)

    def ask_trained(self, changes: int) -> None:
        """Request the samples that all have trained on; `changes` is the number of changes of the set of trainers."""
        self._ask(Ask.TRAINED, changes)

    def trained(self) -> tuple[Any, Any]:
        """After `ask_trained`, `lost` and, with ``trainers.elastic``, `save`: return the samples since the last time.

        Returns what `TrainedSamples.take` returns.
        """
        samples, drawn = self._read(self._ranks[0], Tag.TRAINED)
        return samples, drawn

    def leave(self) -> None:
        """Stop pushing and pulling."""
        self._report(self._pushes)
        self._ask(Ask.LEAVE, self._pushes)
        self._wait_for_sent()

    def _ask(self, ask: Ask, number: int, checkpoint: int = 0) -> None:
        self._send(np.array([ask, number, checkpoint], np.int64), self._ranks[0], Tag.ASK)

    def _go(self, meanwhile: Callable[[], object] = lambda: None) -> tuple[int, int, int]:
        told = np.zeros(3, np.int64)
        self._wait(self._communicator.Irecv(told, self._ranks[0], Tag.GO), meanwhile)
        return int(told[0]), int(told[1]), int(told[2])

    def _read(self, rank: int, tag: Tag) -> Any:
        from mpi4py import MPI

        return read_pieces(lambda data: self._wait(self._communicator.Irecv([data, MPI.BYTE], rank, tag)))

    def _send(self, data: Any, to: int, tag: Tag) -> None:
        from mpi4py import MPI

        self._sent.append((self._communicator.Isend([data, MPI.BYTE], to, tag), data))

    def _wait_for_sent(self) -> None:
        sent, self._sent = self._sent, []
        for request, _ in sent:
            self._wait(request)

    def _wait(self, request: MPI.Request, meanwhile: Callable[[], object] = lambda: None) -> None:
        if not wait(request, lambda seconds: None, meanwhile=meanwhile):
            raise StreamError(
                "mpidata.ParameterServer: no parameter server answers: one has died, or the job is ending. See the "
                "job's summary for the reason."
            )
