"""A trainer of the job: drawing, and leaving the job in order."""

from __future__ import annotations

import ctypes
import functools
import math
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import JobInterrupt, MpidataError, StreamError
from mpidata.loading.figures import LEFT_EARLY, STEP_WAITS_S, UNTRAINED, WAITS_S
from mpidata.loading.transport import Loaders
from mpidata.loading.turns import Turns
from mpidata.native import constants
from mpidata.native.forked import ForkedLibrary, forked_error, when_forked
from mpidata.native.library import Library, check
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.stop import read_stop
from mpidata.sampling.losses.telling import Telling
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.streams.drawn import Drawn
from mpidata.trainer.elastic.streams.shared_stream import SharedStream, meet
from mpidata.trainer.field_statistics.statistics import write_statistics
from mpidata.trainer.idle import IdleWatch, Pace, pace_of_stream
from mpidata.trainer.interleaving import InTurn
from mpidata.trainer.local_sgd.meeting_points import Apart, come
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.shares.grouping import Grouping
from mpidata.trainer.shares.share import Share

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.record.writer import Recorder
    from mpidata.trainer.served.link import Link

_T = TypeVar("_T")
SLICE_S = 0.2  # longest time in the library while it waits, so that Python gets to handle signals
_AHEAD_S = -1.0  # as c_api/src/trainer/draw.h has it
# At the end, others may have hours of work left, and waiting costs nothing; after a failure the scheduler acts at once.
_CLOSE_S = 7 * 86400.0


class Trainer:
    """A trainer of the job; for any thread, `draw` for one at a time.

    Parameters
    ----------
    plan : Plan
        Of the job.
    library : Library
        Opened as a trainer; in a forked child, each of its functions raises StreamError.
    communicator : mpi4py.MPI.Intracomm or None
        Of the trainers; None on a mate, and without a job.

    Attributes
    ----------
    scripts : mpi4py.MPI.Intracomm or None
        Of all ranks that run the script: the trainers and their mates.
    replica : Replica
        The place among the copies of the model.
    ended : bool
        The stream is over, or there is none.
    closed, is_alone : bool
        This trainer has left the job; there is no job.
    drawn, samples : int
        Batches (or single samples) drawn so far, those before a resume included; samples while `apart` is set.
    members, apart : Members or None, Apart or None
        The trainers that live, in a job that goes on when one dies; where they make steps of their own.
    leaves : list of callable
        Called when this trainer trains no more.
    grouping : Grouping or None
        How samples make batches, once that is fixed.
    share, checkpoints : Share, Checkpoints
        This trainer's part in the batches of all, and in checkpoints.
    passes, passes_begun : int
        Over the stream.
    shared, in_turn, losses, turns, recorder : SharedStream, InTurn, Telling, Turns, Recorder or None
        See their classes.
    """

    def __init__(self, plan: Plan, library: Library, communicator: MPI.Intracomm | None) -> None:
        from mpidata.checkpoint.taking import Checkpoints  # loads h5py

        self.plan, self.library, self.communicator, self.scripts = plan, library, communicator, communicator
        self.members: Members | None = None
        if communicator is not None and plan.trainers_at_least:
            self.members = Members(communicator.Dup(), self._say_waits, self._regroup, plan.trainer_spares)
            self.members.drawn = Drawn(self.note_trained) if plan.has_stream else None
        self.shared = SharedStream(lambda: self.drawn)
        self.losses = Telling(library, plan.simulations + plan.validation)
        self.recorder: Recorder | None = None
        self.ended = not plan.has_stream
        self.closed = self._parted = self.is_alone = False
        self.apart: Apart | None = None
        self.leaves: list[Callable[[], object]] = []
        self.servers: Link | None = None  # the way to the parameter servers
        self.drawn = self.samples = self.passes = self.passes_begun = 0
        self._index = communicator.Get_rank() if communicator else 0
        self.replica = Replica(self._index, plan.trainers)
        self.checkpoints = Checkpoints(plan, library, self._index)
        self.turns = Turns(lambda: None)
        self._idle = IdleWatch(plan, self._index, self._pace, self._wait_for_others)
        self.grouping: Grouping | None = None
        self.share, self.in_turn = Share(), InTurn()
        self._interrupted = self._asked_in_vain = self._forked = self._waiting = False
        self._lock = threading.RLock()
        self._page = ctypes.c_void_p(), ctypes.c_int64()
        self._page_found = ctypes.byref(self._page[0]), ctypes.byref(self._page[1])
        when_forked(self._forget_library)
        self._when_drawn: list[tuple[int, Callable[[], object]]] = []

    def begin(self) -> None:
        """Continue the plan's checkpoint, if any, and let samples come in.

        Raises
        ------
        StreamError, LibraryError
            The checkpoint cannot be continued; the job has been told.
        """
        error: MpidataError | None = None
        try:
            if not self.waits_for_place:
                self.checkpoints.restore()
            self.drawn = self.checkpoints.restored.batch
        except MpidataError as caught:
            error = caught
        check(self.library, self.library.mpidata_trainer_begin())
        if error is not None:
            self.fail(str(error))
            raise error
        self._idle.start()

    @property
    def waits_for_place(self) -> bool:
        """Whether this is a spare, which trains when another one has died."""
        return self.members is not None and self.members.waits

    def start(self, grouping: Grouping) -> None:
        """Fix how samples of the process's one stream make batches; raises StreamError where that is done otherwise."""
        if self._forked:
            raise forked_error()
        if not self.plan.has_stream:
            raise StreamError("This job has no solvers, so there is no stream. Add 'solvers' to the job file.")
        with self._lock:
            if self.grouping is None:
                grouping.start(self.library)
                self.grouping, self.share.total = grouping, grouping.total
                if self.members is not None and self.plan.trainer_spares:
                    self.shared.share(self.members)
                if self.members is not None and self.members.drawn is not None:
                    self.members.drawn.room = max(self.members.drawn.room, grouping.largest(self.plan.first_trainers))
            self.grouping.check_alike(grouping)

    def draw(self, fields: Any, rest: Any, *, shifted: bool = True, fill: Any = None, ahead: bool = False) -> bool:
        """Fill one batch; False when the stream is over, or with `ahead` of the loop, if none is there. May sleep.

        `fields` has the addresses of the fields in the job's order, `rest` those of parameters, time, step and
        simulation; `shifted` and `fill` are as in PackedMemory. `count_draw` follows when the loop has the batch.
        """
        draw = self.library.mpidata_trainer_draw
        if fill is not None or not shifted:
            draw = functools.partial(self.library.mpidata_trainer_draw_ragged, shifted, fill)
        return self._wait(functools.partial(draw, fields, *rest), ahead)

    def draw_numbers(self, numbers: int, *, ahead: bool = False) -> bool:
        """Draw one batch, of which `draw` then fills the memory; False when the stream is over.

        `numbers` is the address of int64 for them: for each number of a sample those of all steps of the batch.
        """
        return self._wait(functools.partial(self.library.mpidata_trainer_draw_numbers, numbers), ahead)

    def draw_share(self, *, ahead: bool = False) -> tuple[int, int] | None:
        """Draw this trainer's share of one batch, as `draw_numbers`: its samples, and of how many trainers."""
        count, trainers = ctypes.c_int64(), ctypes.c_int64()
        draw = functools.partial(self.library.mpidata_trainer_draw_share, ctypes.byref(count), ctypes.byref(trainers))
        return (count.value, trainers.value) if self._wait(draw, ahead) else None

    def draw_page(self, size: int, *, ahead: bool = False) -> tuple[int, Callable[[], None]] | None:
        """Draw one batch, of `size` bytes, without a copy, where there is one that can be. Sleeps while it waits.

        Gives its address, and what gives it back, in any thread. None: `draw` has a batch, or the stream is over.
        """
        came = self._wait(functools.partial(self.library.mpidata_trainer_draw_page, size, *self._page_found), ahead)
        address, page = self._page
        return (address.value, functools.partial(self._give_back, page.value)) if came and address.value else None

    def alike(self, what: str, make: Callable[[], _T]) -> _T:
        """Make something that all ranks of the replica are to have, of tensors and plain values; the first makes it."""
        return make()

    def loaders(self, make: Callable[[], Loaders]) -> Loaders:
        """Give the way to the loaders, which `make` makes."""
        return make()

    def ask_checkpoint(self) -> None:
        """Ask for a checkpoint at one of the next batches; does not block."""
        check(self.library, self.library.mpidata_trainer_checkpoint())

    def count_batch(self) -> int:
        """Count a batch of loaders, for at most `SLICE_S`; gives a status code."""
        return int(self.library.mpidata_trainer_count_batch(SLICE_S))

    def when_drawn(self, batches: int, call: Callable[[], object]) -> None:
        """Have something called once, when so many batches have been drawn, or with the next one if more have."""
        self._when_drawn.append((batches, call))

    def count_draw(self, share: tuple[int, int] | None = None, *, ahead: bool = False) -> None:
        """Note that the loop has the next batch, of this share if all draw it together, drawn ahead or not."""
        if share is not None:
            self.share.took(*share)
        if ahead:
            check(self.library, self.library.mpidata_trainer_had_ahead())
        self.drawn += 1
        if self._when_drawn:
            waiting, self._when_drawn = self._when_drawn, []
            for batches, call in waiting:
                call() if batches <= self.drawn else self._when_drawn.append((batches, call))

    def is_over(self) -> bool:
        """Whether there is no further batch: the same on all trainers after as many. Sleeps until that is known."""
        self.shared.begin_draw()
        return self.closed or not self._wait(self.library.mpidata_trainer_ahead)

    def _give_back(self, page: int) -> None:
        if not self._forked:
            self.library.mpidata_trainer_give_back(page)

    def release_constants(self, addresses: Sequence[int]) -> None:
        """Give back a reference to each of these constants, in any thread."""
        for address in addresses if not self._forked else ():
            self.library.mpidata_trainer_constants_release(address)

    def _forget_library(self) -> None:
        """Use the library no more, as this is a forked child."""
        self._forked = True
        self.library = ForkedLibrary()

    def _wait(self, call: Callable[[float], int], ahead: bool = False) -> bool:
        """Call until there is a batch; False when the stream is over, or with `ahead` if none is there now."""
        while not self.ended:
            if self.closed:
                raise StreamError("The stream is closed. Iterate before stream.close().")
            self._waiting = True
            status = self.shared.draw(call, _AHEAD_S if ahead else SLICE_S)
            self._waiting = False
            if not status:  # nearly always
                return True
            if status == constants.ERR_AGAIN:
                if ahead:
                    return False
                if self.apart is not None:
                    self.apart.look()
            elif status == constants.CHECKPOINT:
                reached("checkpoint")
                self.checkpoints.take()
            elif status == constants.MEET:
                self.meet()
            elif status == constants.END:
                self.ended = True
                if self.is_stopped():
                    self.raise_interrupt()
                come(self.apart)
            else:
                check(self.library, status)
        return False

    def meet(self) -> None:
        """Come together with the other trainers, as the stream ends, or as one has left for which they would wait."""
        assert self.members is not None
        meet(self.library, self.members)

    def is_done(self) -> bool:
        """Whether the script has all that it asked for: the stream is over or closed, or no epoch is under way."""
        return self.ended or self.closed if self.plan.has_stream else not self.turns.in_epoch

    def is_stopped(self) -> bool:
        """Whether the stream was cut short: by a signal to the job, or as another trainer left."""
        stopped = ctypes.c_int()
        check(self.library, self.library.mpidata_trainer_stopped(ctypes.byref(stopped)))
        return stopped.value != 0

    def raise_interrupt(self) -> None:
        """Raise KeyboardInterrupt, once, if Ctrl-C has stopped the job; to be called when nothing more comes."""
        self._asked_in_vain = True
        if self._interrupted:
            return
        request = read_stop(RunFolder(self.plan.run).stop)
        if request is not None and request.interrupt:
            self._interrupted = True
            raise JobInterrupt("Ctrl-C in `mpidata run`")

    def begin_pass(self, warn: bool = True) -> None:
        """Begin a pass over the stream; raises StreamError if the script has not claimed its state in a checkpoint.

        With `warn` it warns of a pass over a stream that is over.
        """
        if self._forked:
            raise forked_error()
        self.checkpoints.check_claimed()
        self.passes += 1
        self.passes_begun += 1
        if self.ended and warn:
            how = "the job was stopped" if self.is_stopped() else "the stream was over"
            warnings.warn(
                f"This pass over the stream is empty: {how} after {self._progress()}. A loop over epochs ends in time "
                "with `while not stream.over:`.",
                stacklevel=3,
            )

    def end_pass(self) -> None:
        """Note that the script has left its loop; the next pass goes on with the samples that follow."""
        self.passes -= 1

    def _pace(self) -> Pace | None:
        """Tell, in another thread, how far the script is."""
        if not self.plan.has_stream:
            return Pace(self.turns.given, self.turns.is_computing(), "it is within a loop over its batches")
        outside = not self.passes and self.drawn > self.checkpoints.restored.batch
        return pace_of_stream(self.library, self.plan, self._waiting, outside)

    def _regroup(self, living: MPI.Intracomm) -> None:
        check(self.library, self.library.mpidata_trainer_regroup(living.py2f()))

    def note_trained(self, samples: NDArray[np.int64], drawn: NDArray[np.int64]) -> None:
        """Note with which samples all trainers have made a step, and how many each trainer has drawn of them."""
        trained = self.library.mpidata_trainer_trained
        check(self.library, trained(len(samples), samples.ctypes.data, len(drawn), drawn.ctypes.data))

    def _say_waits(self, seconds: float) -> None:
        """Tell for how long this trainer has waited for the others in a step."""
        self.library.mpidata_trainer_report(STEP_WAITS_S.encode(), seconds)

    def _wait_for_others(self, seconds: float) -> None:
        if not self.plan.has_stream:
            self.library.mpidata_trainer_report(WAITS_S.encode(), seconds)

    def _progress(self) -> str:
        return f"{'sample' if self.grouping == Grouping() else 'batch'} {self.drawn}"

    def fail(self, sentence: str) -> None:
        """Tell the scheduler that the script ended with an error, and stay a moment so that it hears of it."""
        if self._forked:
            return
        with self._lock:
            self._idle.stop()
            if self._parted:
                return
            self.library.mpidata_trainer_stop(1, sentence.encode())
            self.closed = self._parted = True
        self._part(deadlines.FAILED_RECORDER_S, constants.AFTER_ERROR_MS / 1e3)

    def leave_stream(self, why: str = "the script called stream.close()") -> None:
        """Draw no more; stops the job when the stream is not over. Waits for nobody, and the script may go on."""
        if self._forked:
            return
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._idle.stop()
            if not self.ended:
                reason = f"{why} after {self._progress()}, before the stream was over"
                self.library.mpidata_trainer_stop(0, reason.encode())

    def close(self, why: str = "the script ended") -> None:
        """Leave the job; stops it when the stream is not over. Sleeps until all solvers and trainers have ended."""
        if self._forked:
            return
        self.leave_stream(why)
        for leave in () if self._parted else self.leaves:
            leave()
        with self._lock:
            if self._parted:
                return
            self._parted = True
            if self.turns.in_epoch or (self._asked_in_vain and not self.plan.has_stream):
                self.library.mpidata_trainer_report(LEFT_EARLY.encode(), self.turns.given)
                if self.apart is not None and read_stop(RunFolder(self.plan.run).stop) is None:  # nobody waits for it
                    self.library.mpidata_trainer_report(UNTRAINED.encode(), self.turns.left())
        self.checkpoints.finish()
        check(self.library, self._part(math.inf, _CLOSE_S))

    def _part(self, recorder_s: float, close_s: float) -> int:
        """Bring what is left to where it belongs, and leave the job; gives a status code."""
        self.losses.end()
        if self.plan.statistics and (self.members.is_first if self.members is not None else self._index == 0):
            write_statistics(self.plan, self.library)
        if self.recorder is not None:
            self.recorder.finish(recorder_s)
        return int(self.library.mpidata_trainer_close(close_s))
