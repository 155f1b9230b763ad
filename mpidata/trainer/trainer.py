"""A trainer of the job: drawing batches, and leaving the job properly."""

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
from mpidata.native.forked_library import ForkedLibrary, forked_error, when_forked
from mpidata.native.library import Library, check
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.stop import read_stop
from mpidata.sampling.losses.reporter import LossReporter
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.elastic.points import reached
from mpidata.trainer.elastic.streams.drawn import Drawn
from mpidata.trainer.elastic.streams.shared_stream import SharedStream, meet
from mpidata.trainer.field_statistics.statistics import write_statistics
from mpidata.trainer.idle_watch import IdleWatch, Pace, pace_of_stream
from mpidata.trainer.interleaving import InterleavingCheck
from mpidata.trainer.local_sgd.meeting_points import IndependentTrainers, come
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.shares.grouping import Grouping
from mpidata.trainer.shares.share import Share

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpidata.record.writer import Recorder
    from mpidata.trainer.served.link import Link

_T = TypeVar("_T")
SLICE_S = 0.2  # longest wait in the library, so that Python can handle signals
_AHEAD_S = -1.0  # as in c_api/src/trainer/draw.h
# At the end others may have hours of work left, and waiting costs nothing; after a failure the scheduler acts at once.
_CLOSE_S = 7 * 86400.0


class Trainer:
    """A trainer of the job; for any thread, `draw` for one at a time.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    library : Library
        The library, opened as a trainer; in a forked child, each of its functions raises StreamError.
    communicator : mpi4py.MPI.Intracomm or None
        Communicator of the trainers; None on a mate, and without a job.

    Attributes
    ----------
    scripts : mpi4py.MPI.Intracomm or None
        Communicator of all ranks that run the script: the trainers and their mates.
    replica : Replica
        The position among the copies of the model.
    ended : bool
        Whether the stream is over, or there is none.
    closed, is_alone : bool
        Whether this trainer has left the job; whether there is no job.
    drawn, samples : int
        Batches (or single samples) drawn so far, including those before a resume; samples while `apart` is set.
    members, apart : Members or None, IndependentTrainers or None
        The living trainers, in a job that continues when one dies; set if trainers make their own steps.
    leaves : list of callable
        Called when this trainer stops training.
    grouping : Grouping or None
        How samples are grouped into batches, once this is set.
    share, checkpoints : Share, Checkpoints
        This trainer's share in the batches of all, and its part in checkpoints.
    passes, passes_begun : int
        Number of open passes over the stream, and of passes begun.
    shared, in_turn, losses, turns, recorder : SharedStream, InterleavingCheck, LossReporter, Turns, Recorder or None
        See their classes.
    """

    def __init__(self, plan: Plan, library: Library, communicator: MPI.Intracomm | None) -> None:
        from mpidata.checkpoint.snapshots import Checkpoints  # loads h5py

        self.plan, self.library, self.communicator, self.scripts = plan, library, communicator, communicator
        self.members: Members | None = None
        if communicator is not None and plan.trainers_at_least:
            self.members = Members(communicator.Dup(), self._say_waits, self._regroup, plan.trainer_spares)
            self.members.drawn = Drawn(self.note_trained) if plan.has_stream else None
        self.shared = SharedStream(lambda: self.drawn)
        self.losses = LossReporter(library, plan.simulations + plan.validation)
        self.recorder: Recorder | None = None
        self.ended = not plan.has_stream
        self.closed = self._parted = self.is_alone = False
        self.apart: IndependentTrainers | None = None
        self.leaves: list[Callable[[], object]] = []
        self.servers: Link | None = None  # the connection to the parameter servers
        self.drawn = self.samples = self.passes = self.passes_begun = 0
        self._index = communicator.Get_rank() if communicator else 0
        self.replica = Replica(self._index, plan.trainers)
        self.checkpoints = Checkpoints(plan, library, self._index)
        self.turns = Turns(lambda: None)
        self._idle = IdleWatch(plan, self._index, self._pace, self._wait_for_others)
        self.grouping: Grouping | None = None
        self.share, self.in_turn = Share(), InterleavingCheck()
        self._interrupted = self._asked_in_vain = self._forked = self._waiting = False
        self._lock = threading.RLock()
        self._page = ctypes.c_void_p(), ctypes.c_int64()
        self._page_found = ctypes.byref(self._page[0]), ctypes.byref(self._page[1])
        when_forked(self._forget_library)
        self._when_drawn: list[tuple[int, Callable[[], object]]] = []

    def begin(self) -> None:
        """Resume from the plan's checkpoint, if any, and start to receive samples.

        Raises
        ------
        StreamError, LibraryError
            The job cannot resume from the checkpoint; the scheduler has been informed.
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
        """Whether this is a spare, which trains only after another trainer has died."""
        return self.members is not None and self.members.waits

    def start(self, grouping: Grouping) -> None:
        """Set how samples of the process's one stream are grouped; raises StreamError if already set differently."""
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
        """Fill one batch; False when the stream is over, or, with `ahead` of the loop, if none is ready. May sleep.

        `fields` has the addresses of the fields in the job's order, `rest` those of parameters, time, step and
        simulation; `shifted` and `fill` are as in PackedMemory. `count_draw` follows when the loop has the batch.
        """
        draw = self.library.mpidata_trainer_draw
        if fill is not None or not shifted:
            draw = functools.partial(self.library.mpidata_trainer_draw_ragged, shifted, fill)
        return self._wait(functools.partial(draw, fields, *rest), ahead)

    def draw_numbers(self, numbers: int, *, ahead: bool = False) -> bool:
        """Draw one batch, whose memory `draw` then fills; False when the stream is over.

        `numbers` is the address of an int64 array: for each number of a sample its values for all steps of the batch.
        """
        return self._wait(functools.partial(self.library.mpidata_trainer_draw_numbers, numbers), ahead)

    def draw_share(self, *, ahead: bool = False) -> tuple[int, int] | None:
        """Draw this trainer's share of one batch, like `draw_numbers`: its number of samples, and that of trainers."""
        count, trainers = ctypes.c_int64(), ctypes.c_int64()
        draw = functools.partial(self.library.mpidata_trainer_draw_share, ctypes.byref(count), ctypes.byref(trainers))
        return (count.value, trainers.value) if self._wait(draw, ahead) else None

    def draw_page(self, size: int, *, ahead: bool = False) -> tuple[int, Callable[[], None]] | None:
        """Draw one batch, of `size` bytes, without a copy if possible. Sleeps while it waits.

        Returns its address, and a callable for any thread that gives it back; None: use `draw`, or the stream is over.
        """
        came = self._wait(functools.partial(self.library.mpidata_trainer_draw_page, size, *self._page_found), ahead)
        address, page = self._page
        return (address.value, functools.partial(self._give_back, page.value)) if came and address.value else None

    def alike(self, what: str, make: Callable[[], _T]) -> _T:
        """Return tensors and plain values for all ranks of the replica; the first rank makes them."""
        return make()

    def loaders(self, make: Callable[[], Loaders]) -> Loaders:
        """Return the connection to the loaders, which `make` makes."""
        return make()

    def ask_checkpoint(self) -> None:
        """Request a checkpoint at one of the next batches; does not block."""
        check(self.library, self.library.mpidata_trainer_checkpoint())

    def count_batch(self) -> int:
        """Count a batch of loaders, for at most `SLICE_S`; return a status code."""
        return int(self.library.mpidata_trainer_count_batch(SLICE_S))

    def when_drawn(self, batches: int, call: Callable[[], object]) -> None:
        """Register a call for when `batches` batches have been drawn, or for the next batch if more have."""
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
        """Whether there is no further batch: the same on all trainers at the same batch. Sleeps until this is known."""
        self.shared.begin_draw()
        return self.closed or not self._wait(self.library.mpidata_trainer_ahead)

    def _give_back(self, page: int) -> None:
        if not self._forked:
            self.library.mpidata_trainer_give_back(page)

    def release_constants(self, addresses: Sequence[int]) -> None:
        """Release a reference to each of these constants, in any thread."""
        for address in addresses if not self._forked else ():
            self.library.mpidata_trainer_constants_release(address)

    def _forget_library(self) -> None:
        """Stop using the library, because this is a forked child."""
        self._forked = True
        self.library = ForkedLibrary()

    def _wait(self, call: Callable[[float], int], ahead: bool = False) -> bool:
        """Call until there is a batch; False when the stream is over, or with `ahead` if none is ready."""
        while not self.ended:
            if self.closed:
                raise StreamError("The stream is closed. Iterate before stream.close().")
            self._waiting = True
            status = self.shared.draw(call, _AHEAD_S if ahead else SLICE_S)
            self._waiting = False
            if not status:  # the usual case
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
        """Meet the other trainers when the stream ends, or when one has left for which they would wait."""
        assert self.members is not None
        meet(self.library, self.members)

    def is_done(self) -> bool:
        """Whether the script is done: the stream is over or closed, or no epoch is in progress."""
        return self.ended or self.closed if self.plan.has_stream else not self.turns.in_epoch

    def is_stopped(self) -> bool:
        """Whether the stream was cut short: by a signal to the job, or because another trainer left."""
        stopped = ctypes.c_int()
        check(self.library, self.library.mpidata_trainer_stopped(ctypes.byref(stopped)))
        return stopped.value != 0

    def raise_interrupt(self) -> None:
        """Raise KeyboardInterrupt, once, if Ctrl-C has stopped the job; call this when nothing more comes."""
        self._asked_in_vain = True
        if self._interrupted:
            return
        request = read_stop(RunFolder(self.plan.run).stop)
        if request is not None and request.interrupt:
            self._interrupted = True
            raise JobInterrupt("Ctrl-C in `mpidata run`")

    def begin_pass(self, warn: bool = True) -> None:
        """Start a pass over the stream; raises StreamError if the script has not claimed its state in a checkpoint.

        With `warn`, warns if the stream is over.
        """
        if self._forked:
            raise forked_error()
        self.checkpoints.check_claimed()
        self.passes += 1
        self.passes_begun += 1
        if self.ended and warn:
            how = "the job was stopped" if self.is_stopped() else "the stream was over"
            warnings.warn(
                f"This pass over the stream is empty: {how} after {self._progress()}. Use `while not stream.over:` as "
                "the loop over epochs.",
                stacklevel=3,
            )

    def end_pass(self) -> None:
        """Note that the script has left its loop; the next pass continues with the samples that follow."""
        self.passes -= 1

    def _pace(self) -> Pace | None:
        """Return the progress of the script; for another thread."""
        if not self.plan.has_stream:
            return Pace(self.turns.given, self.turns.is_computing(), "it is within a loop over its batches")
        outside = not self.passes and self.drawn > self.checkpoints.restored.batch
        return pace_of_stream(self.library, self.plan, self._waiting, outside)

    def _regroup(self, living: MPI.Intracomm) -> None:
        check(self.library, self.library.mpidata_trainer_regroup(living.py2f()))

    def note_trained(self, samples: NDArray[np.int64], drawn: NDArray[np.int64]) -> None:
        """Note the samples of a step of all trainers, and how many of them each trainer has drawn."""
        trained = self.library.mpidata_trainer_trained
        check(self.library, trained(len(samples), samples.ctypes.data, len(drawn), drawn.ctypes.data))

    def _say_waits(self, seconds: float) -> None:
        """Report how long this trainer has waited for the others in a step."""
        self.library.mpidata_trainer_report(STEP_WAITS_S.encode(), seconds)

    def _wait_for_others(self, seconds: float) -> None:
        if not self.plan.has_stream:
            self.library.mpidata_trainer_report(WAITS_S.encode(), seconds)

    def _progress(self) -> str:
        return f"{'sample' if self.grouping == Grouping() else 'batch'} {self.drawn}"

    def fail(self, sentence: str) -> None:
        """Report to the scheduler that the script ended with an error, and wait briefly until it knows."""
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
        """Draw no more; stops the job if the stream is not over. Does not wait, and the script may continue."""
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
        """Leave the job; stops it if the stream is not over. Sleeps until all solvers and trainers have ended."""
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
        """Send or write remaining losses, statistics and records, and leave the job; return a status code."""
        self.losses.end()
        if self.plan.statistics and (self.members.is_first if self.members is not None else self._index == 0):
            write_statistics(self.plan, self.library)
        if self.recorder is not None:
            self.recorder.finish(recorder_s)
        return int(self.library.mpidata_trainer_close(close_s))
