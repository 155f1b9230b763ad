"""A mate: a rank of a replica that gets the batches that the first rank has drawn."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from mpidata.errors import StreamError
from mpidata.loading.transport import Loaders
from mpidata.native.forked_library import forked_error
from mpidata.native.library import Library, check
from mpidata.run.plan import Plan
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.replica.checkpoints import MateCheckpoints
from mpidata.trainer.replica.constants import MateConstants
from mpidata.trainer.replica.library import MateLibrary
from mpidata.trainer.replica.link import Incoming, Link, Tag
from mpidata.trainer.replica.loaders import MateLoaders
from mpidata.trainer.replica.losses import MateLossReporter
from mpidata.trainer.replica.records import Facts, Kind, Word, error_of, pack, unpack
from mpidata.trainer.replica.replica import Replica, join_replica, join_scripts
from mpidata.trainer.replica.tensors import TensorMemory
from mpidata.trainer.trainer import Trainer

__all__ = ["MateTrainer"]

_T = TypeVar("_T")
_TELLS_AFTER_S = 10.0  # that it waits, which only matters if the first rank waits for it
_Record = tuple[Kind, tuple[Any, ...], Incoming]


class MateTrainer(Trainer):
    """A rank of a replica that does not draw itself.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    library : Library
        The library, opened as a mate.
    trainer, rank : int
        Number of the replica, and this one's rank in it, from 1.
    """

    def __init__(self, plan: Plan, library: Library, trainer: int, rank: int) -> None:
        self.facts = Facts()
        super().__init__(plan, MateLibrary(plan.simulations, lambda: self.facts, self.say), None)
        self._index, self._native = trainer, library
        self.link = Link(join_replica(plan, trainer), trainer, self._look, library.mpidata_mate_await_end)
        self.scripts = join_scripts(plan)
        self.replica = Replica(trainer, plan.trainers, rank, plan.ranks_per_replica)
        self.checkpoints: MateCheckpoints = MateCheckpoints(plan, self.library, trainer, self.link)
        self.losses = MateLossReporter(self.library, plan.simulations + plan.validation, lambda: self.drawn, self.say)
        self.constants = MateConstants()
        self.memory = {pinned: TensorMemory(pinned) for pinned in (False, True)}  # of batches, page-locked or not
        self._stopped = False
        self._next: _Record | None = None  # received, but not used yet
        self._received = 0
        self._asked: tuple[str, float] | None = None  # the call that waits now, and since when; until it is told
        self._call = ""  # the last one that the first rank has also made

    def begin(self) -> None:
        """Resume from the plan's checkpoint, if any."""
        self.checkpoints.restore()
        self.checkpoints.hold("mpidata.published", self.library)
        self.drawn = self.checkpoints.restored.batch

    def ask_checkpoint(self) -> None:
        """Request a checkpoint."""
        self.say(Word.CHECKPOINT, self.drawn)

    def say(self, word: Word, *things: Any) -> None:
        """Send a word to the first rank; does not block."""
        if self._forked:
            raise forked_error()
        self.link.send([0], Tag.WORD, pack(word, *things), wait=False)

    def batch(self, pinned: bool) -> dict[str, torch.Tensor] | None:
        """Wait for the next batch, in page-locked memory if `pinned`; None at the end of the stream."""
        if self.ended:
            return None
        if self.closed:
            raise StreamError("The stream is closed. Iterate before stream.close().")
        kind, things, incoming = self._await(Kind.BATCH, Kind.END, asked="the next batch")
        if kind == Kind.END:
            self._end(*things)
            return None
        described, self.facts = things
        tensors, *constants = self.memory[pinned].receive(described, incoming)
        if self.plan.constants:
            tensors = self._with_constants(tensors, constants)
        self.count_draw(self.facts.share)
        return tensors

    def _with_constants(
        self, tensors: dict[str, torch.Tensor], came: list[dict[str, torch.Tensor]]
    ) -> dict[str, torch.Tensor]:
        """Keep the constants that came with a batch; a single sample has its own."""
        found: dict[int, dict[str, torch.Tensor]] = {}
        for of in came:
            for key, tensor in of.items():
                simulation, _, name = key.partition(" ")
                found.setdefault(int(simulation), {})[name] = tensor
        simulations = tensors["simulation"].reshape(-1).tolist()
        self.constants.take(simulations, found)
        single = tensors["simulation"].dim() == 0
        return tensors | ((self.constants.find(simulations[0]) or {}) if single else {})

    def is_over(self) -> bool:
        """Whether there is no further batch, according to the first rank."""
        if self.ended or self.closed:
            return True
        record = self._await(Kind.AHEAD, Kind.BATCH, Kind.END, asked="stream.over")
        if record[0] == Kind.END:
            self._end(*record[1])
        elif record[0] == Kind.BATCH:  # the first rank has not asked
            self._next = record
        return self.ended

    def is_stopped(self) -> bool:
        """Whether the stream was cut short."""
        return self._stopped

    def loaders(self, make: Callable[[], Loaders]) -> Loaders:
        """Return the replacement of the connection to the loaders."""
        return MateLoaders(self._of_loaders, self.raise_interrupt)

    def _of_loaders(self) -> tuple[tuple[Any, ...], Incoming]:
        return self._await(Kind.LOADERS, asked=self._call)[1:]

    def count_batch(self) -> int:
        """Wait for the status code with which the first rank counted a batch of loaders."""
        status: int = self._await(Kind.COUNT, asked=self._call)[1][0]
        return status

    def same_call(self, call: str) -> None:
        """Raise StreamError unless the first rank has made the same call."""
        record = self._await(Kind.CALL, asked=call)
        if record[1] != (call,):
            raise self._unlike(call, record)
        self._call = call

    def alike(self, what: str, make: Callable[[], _T]) -> _T:
        """Return what the first rank has made; see `Trainer.alike`."""
        record = self._await(Kind.ALIKE, asked=what)
        if record[1] != (what,):
            raise self._unlike(what, record)
        (packed,) = record[2].arrays()
        made: _T = torch.load(io.BytesIO(packed.data), weights_only=True)
        return made

    def _await(self, *kinds: Kind, asked: str) -> _Record:
        """Wait for a record of one of these kinds; takes part in checkpoints, and raises errors of the first rank."""
        if self._forked:
            raise forked_error()
        while True:
            self._asked = asked, time.monotonic()
            record, self._next = self._next or self._receive(), None
            self._asked = None
            kind, things, _ = record
            if kind in kinds:
                return record
            if kind == Kind.ERROR:
                raise error_of(*things)
            if kind == Kind.CHECKPOINT:
                reached("checkpoint")
                self.checkpoints.take()
            elif kind == Kind.END:  # for `over`, or the next pass
                self._end(*things)
                if not self.closed:
                    raise self._unlike(asked, record)
            elif kind != Kind.AHEAD:
                raise self._unlike(asked, record)

    def _look(self) -> None:
        check(self._native, self._native.mpidata_mate_look())
        if self._asked is not None and time.monotonic() - self._asked[1] > _TELLS_AFTER_S:
            (asked, _), self._asked = self._asked, None
            self.say(Word.WAITS, asked, self._received)

    def _receive(self) -> _Record:
        incoming = self.link.receive(0, Tag.RECORD)
        self._received += 1
        kind, *things = unpack(incoming.head)
        return kind, tuple(things), incoming

    def _unlike(self, here: str, record: _Record) -> StreamError:
        """Make the error that this rank's call is not that of the first rank, whose record stays the next one."""
        kind, things, _ = record
        self._next = None if kind == Kind.END else record
        named = {Kind.CALL: things[:1], Kind.ALIKE: things[:1], Kind.END: ("the end of the stream",)}
        named |= dict.fromkeys((Kind.LOADERS, Kind.COUNT), (self._call,))
        (there,) = named.get(kind, ("the next batch",))
        first = "script of the first rank has ended" if kind == Kind.GONE else f"first rank has continued with {there}"
        return StreamError(
            f"Rank {self.replica.rank} of replica {self.replica.number} asks for {here} after batch {self.drawn}, but "
            f"the {first}. Make the same calls of mpidata on all ranks of a replica, in the same order."
        )

    def _end(self, stopped: bool, facts: Facts) -> None:
        self.ended, self._stopped, self.facts = True, stopped, facts
        if stopped:
            self.raise_interrupt()

    def begin_pass(self, warn: bool = True) -> None:
        """Start a pass over the stream."""
        super().begin_pass(warn=False)
        if self.ended and warn:
            warnings.warn("This pass over the stream is empty, as on the first rank of the replica.", stacklevel=3)

    def fail(self, sentence: str) -> None:
        """Note why the script ended with an error: the job ends when this rank does."""
        if not self._forked:
            self._native.mpidata_beat_at(f"raised {sentence}".encode(errors="replace"))
            self.closed = self._parted = True

    def leave_stream(self, why: str = "the script called stream.close()") -> None:
        """Draw no more; stops the job if the stream is not over."""
        if self._forked or self.closed:
            return
        self.closed = True
        if not self.ended:
            self.say(Word.LEFT, f"{why} after {self._progress()}, before the stream was over")

    def close(self, why: str = "the script ended") -> None:
        """Leave the job; sleeps until the first rank has left it."""
        if self._forked:
            return
        self.leave_stream(why)
        if self._parted:
            return
        self._parted = True
        for leave in self.leaves:
            leave()
        self.checkpoints.finish()
        self.say(Word.GONE)
        self._drop_records()

    def _drop_records(self) -> None:
        """Receive and drop what the first rank sends until it has left; it waits for answers about checkpoints."""
        kind = None
        while kind != Kind.OVER:
            (kind, _, incoming), self._next = self._next or self._receive(), None
            incoming.arrays()
            if kind == Kind.CHECKPOINT:
                self.checkpoints.decline()
        self.link.flush()
        check(self._native, self._native.mpidata_mate_close())
