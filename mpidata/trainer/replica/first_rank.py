"""The first rank of a replica: it draws, and sends its mates what it has drawn."""

from __future__ import annotations

import ctypes
import io
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from mpidata.errors import JobInterrupt, MpidataError
from mpidata.loading.transport import Loaders
from mpidata.native import constants
from mpidata.native.library import Library, check
from mpidata.native.moments import numbers
from mpidata.run.plan import Plan
from mpidata.run.side_channel import say_late
from mpidata.trainer.cancel.stream_methods import cancel
from mpidata.trainer.idle_watch import Pace
from mpidata.trainer.replica.checkpoints import FirstCheckpoints
from mpidata.trainer.replica.constants import FirstConstants
from mpidata.trainer.replica.lateness import LateMates
from mpidata.trainer.replica.link import Link, Tag, bytes_of
from mpidata.trainer.replica.loaders import FirstLoaders
from mpidata.trainer.replica.losses import FirstLossReporter
from mpidata.trainer.replica.records import Facts, Kind, Word, pack, pack_error, unpack
from mpidata.trainer.replica.replica import Replica, join_replica, join_scripts
from mpidata.trainer.replica.tensors import describe
from mpidata.trainer.shares.grouping import Grouping
from mpidata.trainer.trainer import Trainer

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["FirstTrainer"]

_T = TypeVar("_T")
_LOOKS_S = 0.01
_ENDS_WITH_JOB_S = 30.0  # if a mate has died, the scheduler ends this process earlier


class FirstTrainer(Trainer):
    """The trainer of a replica of several ranks: its first rank.

    Parameters are those of `Trainer`. Events of the stream are sent to the mates as they happen, in order, so that each
    of their calls finds the same as this call here.
    """

    def __init__(self, plan: Plan, library: Library, communicator: MPI.Intracomm) -> None:
        super().__init__(plan, library, communicator)
        self.link = Link(join_replica(plan, self._index), self._index, self._look, self._await_end)
        self.scripts = join_scripts(plan)
        self.replica = Replica(self._index, plan.trainers, 0, plan.ranks_per_replica)
        self.checkpoints = FirstCheckpoints(plan, library, self._index, self.link, self._gone)
        self._constants = FirstConstants(self)
        self._late = LateMates(lambda said: say_late(plan.run, f"Trainer {self._index} {said}"))
        self._in_script = set(self.link.mates)
        self._hearing = threading.RLock()
        self._waits: dict[int, tuple[str, int]] = {}  # call in which a mate waits, after how many records
        counted = plan.simulations + plan.validation
        self.losses: FirstLossReporter = FirstLossReporter(library, counted, lambda: self.drawn)
        self._asked = -1  # batch of the last request for a checkpoint
        self._told_end = False
        self.facts = Facts()  # that the mates know
        self._share: tuple[int, int] | None = None

    def start(self, grouping: Grouping) -> None:
        """Set how samples of the process's one stream are grouped into batches."""
        try:
            super().start(grouping)
        except MpidataError as error:
            self.fail_mates(error)
            raise

    def tell(self, kind: Kind, *things: Any) -> None:
        """Send a record to the mates; does not block. Does nothing in a forked child, which MPI does not support."""
        if self._forked:
            return
        self.link.send(self.link.mates, Tag.RECORD, pack(kind, *things), wait=False)

    def same_call(self, call: str) -> None:
        """Send the mates a call that they must also make."""
        self.tell(Kind.CALL, call)

    def give(self, tensors: dict[str, torch.Tensor], constants_apart: bool) -> None:
        """Send the mates a drawn batch, which the script may change afterwards; sleeps while they are too far behind.

        With `constants_apart` they also get its constants, if they do not have them.
        """
        parts = [tensors]
        if constants_apart:
            names = {name for field in self.plan.constants for name in (field.name, f"{field.name}_given")}
            parts = [{name: tensor for name, tensor in tensors.items() if name not in names}]
            lacking = self._constants.lacking(tensors["simulation"].reshape(-1).tolist())
            parts += [{f"{simulation} {name}": of[name] for name in of} for simulation, of in lacking.items()]
        described, arrays = zip(*map(describe, parts), strict=True)
        head = pack(Kind.BATCH, described, self._facts())
        self._late.begin(self.drawn)
        self.link.send(self.link.mates, Tag.RECORD, head, [array for of in arrays for array in of])
        self._late.end()
        self._hear()

    def fail_mates(self, error: BaseException) -> None:
        """Make the mates raise an error of this rank."""
        self.tell(Kind.ERROR, *pack_error(error))

    def alike(self, what: str, make: Callable[[], _T]) -> _T:
        """Make something that the mates also get; see `Trainer.alike`."""
        try:
            made = make()
        except JobInterrupt:
            self._told_end = False
            self._end()
            raise
        except MpidataError as error:
            self.fail_mates(error)
            raise
        memory = io.BytesIO()
        torch.save(made, memory)
        self.link.send(self.link.mates, Tag.RECORD, pack(Kind.ALIKE, what), [bytes_of(memory.getbuffer())])
        return made

    def is_over(self) -> bool:
        """Whether there is no further batch."""
        try:
            over = super().is_over()
        except MpidataError as error:
            self.fail_mates(error)
            raise
        if not over:
            self.tell(Kind.AHEAD)
        return over

    def loaders(self, make: Callable[[], Loaders]) -> Loaders:
        """Return the connection to the loaders, whose messages also go to the mates."""
        return FirstLoaders(make(), self.link)

    def count_batch(self) -> int:
        """Count a batch of loaders, and send the mates the status."""
        status = super().count_batch()
        self._hear()
        if status not in (constants.ERR_AGAIN, constants.CHECKPOINT):
            self.tell(Kind.COUNT, status)
        return status

    def draw_share(self, *, ahead: bool = False) -> tuple[int, int] | None:
        """Draw this trainer's share of one batch."""
        self._share = super().draw_share(ahead=ahead)
        return self._share

    def _wait(self, call: Callable[[float], int], ahead: bool = False) -> bool:
        def look_and_call(timeout_s: float) -> int:
            self._hear()
            return call(timeout_s)

        try:
            more = super()._wait(look_and_call, ahead)
        except JobInterrupt:
            self._end()
            raise
        if not more and not ahead:
            self._end()
        return more

    def _end(self) -> None:
        if not self._told_end:
            self._told_end = True
            self.tell(Kind.END, self.is_stopped(), self._facts())

    def _facts(self) -> Facts:
        steps, moments = ctypes.c_int64(), None
        check(self.library, self.library.mpidata_trainer_steps(ctypes.byref(steps)))
        if self.plan.statistics:
            moments = np.empty((self.plan.n_moments, len(numbers())))
            check(self.library, self.library.mpidata_trainer_scales(moments.ctypes.data))
        self.facts = Facts(steps.value, moments, self._share)
        return self.facts

    def _pace(self) -> Pace | None:
        """Return the progress of the script, and which mates wait for this rank; for another thread."""
        self._hear()
        sent = self.link.sent[Tag.RECORD]
        waits = [f"mate {rank} waits in {call}" for rank, (call, had) in self._waits.items() if had == sent]
        pace = super()._pace()
        return replace(pace, mates=", ".join(waits)) if pace is not None else None

    def _look(self) -> None:
        self._late.look()
        self._hear()

    def _hear(self) -> None:
        """Take the messages of the mates, in one thread at a time, so that they keep their order. Does not block."""
        with self._hearing:
            for rank in self._in_script.copy():
                while (incoming := self.link.received(rank, Tag.WORD)) is not None:
                    self._take(rank, *unpack(incoming.head))

    def _take(self, rank: int, word: Word, *things: Any) -> None:
        if word == Word.GONE:
            self._in_script.discard(rank)
        elif word == Word.WAITS:
            self._waits[rank] = things[0], things[1]
        elif word == Word.LEFT and not (self.ended or self.closed):
            self.library.mpidata_trainer_stop(0, f"mate {rank}: {things[0]}".encode())
        elif word == Word.CHECKPOINT:
            self.ask_checkpoint(*things)
        elif word == Word.REPORT:
            self.library.mpidata_trainer_report(*things)
        elif word == Word.LOSSES:
            self.losses.take_from(rank, *things)
        elif word == Word.CANCEL:
            cancel(self, things[0])

    def ask_checkpoint(self, batch: int | None = None) -> None:
        """Request a checkpoint, once at each batch, whichever rank requests it."""
        batch = self.drawn if batch is None else batch
        with self._lock:
            asked, self._asked = self._asked, max(self._asked, batch)
        if batch > asked:
            super().ask_checkpoint()

    def leave_stream(self, why: str = "the script called stream.close()") -> None:
        """Draw no more; see `Trainer.leave_stream`."""
        super().leave_stream(why)
        if not self._forked and self.plan.has_stream:
            self._end()

    def _gone(self) -> set[int]:
        return set(self.link.mates) - self._in_script

    def _part(self, recorder_s: float, close_s: float) -> int:
        """Leave the job when the mates' scripts have also ended."""
        if recorder_s == math.inf:
            self.tell(Kind.GONE)
        while self._in_script and recorder_s == math.inf:  # else the script has failed
            self._hear()
            time.sleep(_LOOKS_S)
        status = super()._part(recorder_s, close_s)
        if not self._in_script:
            self.tell(Kind.OVER)
            self.link.flush()
        return status

    def _await_end(self) -> None:
        """Sleep until this process is ended with the job, because a rank of the replica has died."""
        time.sleep(_ENDS_WITH_JOB_S)
