"""The main loop of a server: it handles messages, and server 0 decides what all servers do."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mpidata.errors import MpidataError
from mpidata.servers.messages import NOBODY, AllRanks, Ask, Tag, pieces, read_pieces
from mpidata.servers.order import Do, Order, ServerAction
from mpidata.servers.part import Making, Part, State
from mpidata.servers.trained_samples import TrainedSamples, unpack

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["Serving"]

_SHORTEST_S, _LONGEST_S = 2e-5, 1e-3
_MADE = -1  # in place of a trainer: the server has made its part


class Serving:
    """Serves the trainers.

    Parameters
    ----------
    everyone : AllRanks
        The trainers and the servers.
    elastic : bool
        Whether the other trainers continue when one of them dies.
    beat : callable
        Reports that this rank is alive.
    """

    def __init__(self, everyone: AllRanks, elastic: bool, beat: Callable[[], object]) -> None:
        self._communicator, self._trainers, spares = everyone
        self._elastic, self._beat = elastic, beat
        self._servers = len(everyone.servers)
        self._server = self._communicator.Get_rank() - self._trainers
        self._part: Part | None = None
        self._digest: int | None = None
        self._order = Order(self._trainers, self._servers, spares)
        self._pushes: list[deque[torch.Tensor]] = [deque() for _ in range(self._trainers)]
        self._trained = TrainedSamples(self._trainers, spares)
        self._sent: list[tuple[MPI.Request, object]] = []
        self._ended = False
        self._made = 0

    def serve(self) -> None:
        """Serve until all trainers have left; sleeps while no message arrives."""
        pause_s = _SHORTEST_S
        while not self._ended or self._sent:
            self._beat()
            if self._take_what_lives():
                pause_s = _SHORTEST_S
                continue
            self._sent = [one for one in self._sent if not _has_left(one[0])]
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _LONGEST_S)

    def _take_what_lives(self) -> bool:
        """Take the next message, if any, and do what follows; if trainers have died, continue without them."""
        from mpi4py import MPI

        try:
            did = self._take()
        except MPI.Exception:
            if not (self._elastic and self._lose()):
                raise
            did = True
        if did and self._server == 0:
            for deed in self._order.deeds():
                told = np.array([deed.do, *deed.trainers], np.int64)
                for server in range(1, self._servers):
                    self._send(told, self._trainers + server, Tag.DEED)
                self._do(deed)
        return did

    def _lose(self) -> bool:
        """Continue without the trainers that have died; False if a server has died."""
        self._communicator.Ack_failed()
        own, failed = self._communicator.Get_group(), self._communicator.Get_failed()
        dead = failed.Translate_ranks(None, own)
        if self._part is None and 0 in dead:
            raise MpidataError("mpidata.ParameterServer: trainer 0 has died before the servers had its weights.")
        for trainer in dead:
            if trainer < self._trainers:
                self._died(trainer)
        return max(dead) < self._trainers

    def _died(self, trainer: int) -> None:
        self._order.died(trainer)
        self._trained.forget(trainer)

    def _take(self) -> bool:
        from mpi4py import MPI

        status = MPI.Status()
        if not self._communicator.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            return False
        source, tag = status.Get_source(), Tag(status.Get_tag())
        if tag is Tag.MAKE:
            self._make(*read_pieces(lambda data: self._communicator.Recv(data, source, tag)))
        else:
            data = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._communicator.Recv(data, source, tag)
            self._on(tag, source, data)
        return True

    def _on(self, tag: Tag, source: int, data: Any) -> None:
        if tag is Tag.PUSH:
            self._pushes[source].append(torch.from_numpy(data))
            if self._server == 0:
                self._order.had(source, 0)
            else:
                self._send(np.array([source], np.int64), self._trainers, Tag.HAS)
        elif tag is Tag.WANT:
            assert self._part is not None  # a trainer requests rows only after a pull
            wanted = torch.from_numpy(data.view(np.int64))
            self._send(self._part.tables[int(wanted[0])].get(wanted[1:]).numpy(), source, Tag.ROWS)
        elif tag is Tag.HAS:
            number = int(data.view(np.int64)[0])
            self._begin() if number == _MADE else self._order.had(number, source - self._trainers)
        elif tag is Tag.DEED:
            do, *trainers = data.view(np.int64).tolist()
            self._do(ServerAction(Do(do), tuple(trainers)))
        elif tag is Tag.ASK:
            ask, number, checkpoint = data.view(np.int64).tolist()
            self._asked(Ask(ask), source, number, checkpoint)

    def _asked(self, ask: Ask, trainer: int, number: int, checkpoint: int) -> None:
        if ask is Ask.JOIN:
            self._check_alike(trainer, number)
            self._trained.joined(trainer)
        elif ask is Ask.PULL:
            self._order.pull(trainer, number)
        elif ask is Ask.REST:
            self._order.rest(trainer, number)
        elif ask is Ask.SAVE:
            self._order.save(trainer, number, checkpoint)
        elif ask is Ask.SETTLE:
            self._order.settle(trainer, number)
        elif ask is Ask.PAUSE:
            self._order.pause(trainer, number)
        elif ask is Ask.ABSENT:
            self._order.absent(trainer, checkpoint)
        elif ask is Ask.WITHDRAW:
            if self._order.withdraw(trainer, number):
                self._go(trainer, NOBODY)
        elif ask is Ask.TRAINED:
            self._trained.change(number)
            self._tell_trained(trainer)
        elif ask is Ask.LOST:
            self._died(number)
            self._send(self._places[number], trainer, Tag.PLACE)
            self._tell_trained(trainer)
        else:
            self._order.leave(trainer, number)

    def _check_alike(self, trainer: int, digest: int) -> None:
        if self._digest not in (None, digest):
            raise MpidataError(
                f"mpidata.ParameterServer: trainer {trainer} has another model, optimizer or settings than the others. "
                "Use the same on all trainers."
            )
        self._digest = digest

    def _make(self, making: Making, version: int, state: State) -> None:
        self._part = Part(making, self._server, self._servers, state)
        self._making, self._version = making, version
        self._places = [np.zeros(making.place // 8, np.int64) for _ in range(self._trainers)]
        if self._server:
            self._send(np.array([_MADE], np.int64), self._trainers, Tag.HAS)
        else:
            self._begin()

    def _begin(self) -> None:
        """Start, on server 0, once all servers have their part."""
        self._made += 1
        if self._made == self._servers:
            self._order.begin(self._making.staleness, self._version)

    def _do(self, deed: ServerAction) -> None:
        if deed.do is Do.END:
            self._ended = True
            return
        assert self._part is not None
        if deed.do is Do.STEP:
            pushes = [self._pushes[trainer].popleft() for trainer in deed.trainers]
            self._part.step(pushes)
            if self._server == 0 and self._making.place:
                for trainer, push in zip(deed.trainers, pushes, strict=True):
                    self._places[trainer], samples = unpack(push.numpy(), self._making.place)
                    self._trained.add(trainer, samples)
        elif deed.do is Do.SEND:
            self._send(self._part.bytes.numpy().copy(), deed.trainers[0], Tag.PART)
        elif deed.do is Do.SAVE:
            self._send_pieces(self._part.state(), deed.trainers[0], Tag.STATE)
        if self._server == 0 and deed.do is not Do.STEP:
            for trainer in deed.trainers:
                self._go(trainer, deed.trainers[0])
                if deed.do is Do.SAVE and self._making.place:
                    self._tell_trained(trainer)

    def _go(self, trainer: int, saves: int) -> None:
        told = [self._order.version, self._order.ahead(trainer), saves]
        self._send(np.array(told, np.int64), trainer, Tag.GO)

    def _tell_trained(self, trainer: int) -> None:
        self._send_pieces(self._trained.take(trainer), trainer, Tag.TRAINED)

    def _send_pieces(self, thing: Any, to: int, tag: Tag) -> None:
        for piece in pieces(thing):
            self._send(piece, to, tag)

    def _send(self, data: Any, to: int, tag: Tag) -> None:
        from mpi4py import MPI

        try:
            self._sent.append((self._communicator.Isend([data, MPI.BYTE], to, tag), data))
        except MPI.Exception:
            if not self._elastic:  # otherwise the trainer has died, as the next call of MPI reports
                raise


def _has_left(request: MPI.Request) -> bool:
    """Whether a message has been sent, or never will be because its receiver has died."""
    from mpi4py import MPI

    try:
        return bool(request.Test())
    except MPI.Exception:
        return True
