"""The scheduler of a job, rank 0: it receives all events, and ends the job."""

from __future__ import annotations

import contextlib
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import MpidataError, RankDiedError, unforeseen
from mpidata.native import event as kinds
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.scheduler.answering.inference import InferenceRanks
from mpidata.scheduler.answering.learners import LearnerRanks
from mpidata.scheduler.coordinator import Coordinator
from mpidata.scheduler.deaths.adoption import Adoption
from mpidata.scheduler.deaths.lost_groups import Losses
from mpidata.scheduler.deaths.lost_trainers import LostTrainers
from mpidata.scheduler.deaths.spare_trainers import SpareTrainers
from mpidata.scheduler.dispatcher import Dispatcher
from mpidata.scheduler.ending import Ending, OutsideStop, Stream
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.groups import Groups
from mpidata.scheduler.idle_trainers import IdleTrainers
from mpidata.scheduler.loaders import Loaders
from mpidata.scheduler.messages import Messages, index_of, kind_of, log_of
from mpidata.scheduler.relief import Relief, relieve
from mpidata.scheduler.restore import restore, state_of
from mpidata.scheduler.scaling import Scaling
from mpidata.scheduler.simulations import Simulations
from mpidata.scheduler.trainers import DepartureWatch, FirstCause, SilenceWatch, Verdict

if TYPE_CHECKING:
    from mpidata.sampling.learner.learner import Learner

__all__ = ["Scheduler"]

_POLL_S = 0.1  # short enough to write a summary between a launcher's SIGTERM and its SIGKILL


class Scheduler:
    """Dispatches simulations to the groups that ask, and ends the job.

    The job is complete when every simulation is complete or failed, the trainers have drained, and all have left. It
    stops if a training script ends before the stream, and fails if a rank reports an error, a script fails, all
    loaders are lost, or all groups leave while simulations are still to be run.

    Parameters
    ----------
    plan : Plan
        The job's plan; its run folder exists.
    parameters : ndarray, float64, shape (simulations + validation, number of parameters)
        Row i belongs to simulation i.
    messages : Messages
        Messages to and from the other ranks.
    clock : callable, optional
        A monotonic clock that returns seconds.
    learner : Learner, optional
        Draws further rows of `parameters`.

    Notes
    -----
    Not thread-safe, but `interrupt` may be called from a signal handler.
    """

    def __init__(
        self,
        plan: Plan,
        parameters: NDArray[np.float64],
        messages: Messages,
        clock: Callable[[], float] = time.monotonic,
        learner: Learner | None = None,
    ) -> None:
        count = plan.simulations + plan.validation
        self.plan, self._messages, self._clock = plan, messages, clock
        self.simulations = Simulations(count, plan.trainers, range(plan.simulations, count), plan.retries)
        self.groups, self.losses = Groups(plan, messages.can_spawn), Losses(plan)
        self._output = output = RunOutput(plan, self.simulations, self.losses, clock())
        known = plan, messages, output
        self.loaders, self.inference = Loaders(*known), InferenceRanks(*known, self.groups)
        self.learners = LearnerRanks(*known, learner.elsewhere if learner else None)
        keepers = self.loaders, self.inference, self.learners
        self.ending = Ending(plan.trainers, self.groups, *(keeper.groups for keeper in keepers))
        self._dispatcher = Dispatcher(plan, parameters, messages, output, self.simulations, self.groups, self.losses)
        self._keepers = self._dispatcher, *keepers
        self._relief, self._idle = Relief(plan.trainers), IdleTrainers(plan, messages, self._output)
        self._leavers, self._silence = DepartureWatch(plan.has_stream), (silence := SilenceWatch(plan))
        self._lost_trainers, self._first_cause = LostTrainers(plan, output, silence), FirstCause(plan, silence)
        self._spares = SpareTrainers(plan, messages.trainers, output.note, output.figures)
        self._restored = restore(plan, self.simulations, self.losses, self._output.figures)
        self._dispatcher.error = self.losses.verdict(self.simulations.ended)
        for sentence in self._output.figures.record_stopped:
            self.ending.record_stopped(sentence)
        self.checkpoints = Coordinator(plan, messages, self._state, self._output.note, clock())
        self._outside = OutsideStop(plan, self.checkpoints)
        scalers = {"loaders": self.loaders.scale, "groups": self._dispatcher.scale}
        scalers["trainers"] = lambda count: self._spares.scale(count, self.ending.trainers)
        self._scaling = Scaling(plan, scalers, self._output.note)
        self._next_tick, self._over, self._told_why, self._learner = clock(), False, False, learner
        self._stream = stream = Stream(plan, self.simulations, messages, output)
        self._adoption = Adoption(messages, self.simulations, output, stream, self._dispatcher.run_again)
        self._on: dict[type[kinds.Event], Callable[[Any], None]] = {
            kinds.Next: lambda event: self._keeper_of(event).next(event.index, event),
            kinds.Finalized: lambda event: self._keeper_of(event).finalized(event.index, event),
            kinds.Held: self._on_held,
            kinds.Status: self._on_status,
            kinds.Report: self._on_report,
            kinds.Losses: lambda event: self._output.figures.losses.add(event.sums),
            kinds.Stop: self._on_stop,
            kinds.Cancel: lambda event: self._dispatcher.cancelling.ask(event.index, event.simulations),
            kinds.Ready: lambda event: self._messages.ready(
                index_of(event, plan.trainers), event.number, kind_of(event.role), event.answer
            ),
            kinds.Lacks: lambda event: self._adoption.lacks(event.simulation),
            kinds.Adopted: lambda event: self._adoption.adopted(index_of(event, plan.trainers), event.changes),
            kinds.Goodbye: self._on_goodbye,
            kinds.Error: self._on_error,
            kinds.Died: self._on_died,
            kinds.CheckpointWanted: lambda event: self.checkpoints.asked(event, self._clock()),
            kinds.CheckpointWritten: lambda event: self.checkpoints.written(event),
            kinds.RecordStopped: self._on_record_stopped,
        }

    def interrupt(self, number: int, frame: object = None) -> None:
        """Stop the job: at once after SIGINT, else after a checkpoint. To be installed as a signal handler."""
        self._outside.interrupt(number, frame)

    def run(self) -> None:
        """Schedule until the job is complete, or has stopped in order.

        Notes
        -----
        Sleeps while there is nothing to do. If remaining ranks have to be ended, this process ends with them: with
        status 1 if the job has failed, 0 if its trainers stopped it, 128 + the signal's number after a signal.
        """
        try:
            self._output.start()
            if self._restored:
                self._output.note("resume", **self._restored)
            self._look_at_what_is_settled()
            while not self._over:
                self._turn()
        except MpidataError as error:
            if not self._trainer_failed(self._clock(), final=True):
                self.ending.conclusion.update({"died": True} if isinstance(error, RankDiedError) else {})
                self._fail_now(str(error))
        except Exception as error:
            with contextlib.suppress(OSError):
                traceback.print_exc()
            self._fail_now(unforeseen("The scheduler", error, "the log of rank 0"))

    def _turn(self) -> None:
        events = self._messages.poll(_POLL_S)
        for event in events:
            if self._first_cause.dead < 0:  # events that follow from the death are not the cause
                self._on[type(event)](event)
        now = self._clock()
        if not events or now >= self._next_tick:
            self._tick(now)
        if self._over or (self._first_cause.known and self._trainer_failed(now)):
            return
        for keeper in self._keepers:
            if keeper.error and not self.ending.stopping:
                self.ending.conclusion.update({"died": True} if keeper.died_out else {})
                self._fail(keeper.error, keeper.log)
        trainers = self.ending.trainers
        if not (training := self._spares.training(trainers)) or self._lost_trainers.all_exit(training):
            self._spares.release()
        if self.ending.stopping or not trainers:
            self.loaders.leave()
            self.learners.leave()
            self.ending.loaders_leave(now)
            self.inference.leave_after(self.groups)
        elif self._learner and self._learner.turn(now, self.simulations.queue, self._output.figures.losses):
            self._dispatcher.feed()
        self._look_at_what_is_settled()

    def _tick(self, now: float) -> None:
        self._next_tick = now + _POLL_S
        self._output.keep(now)
        for keeper in self._keepers:
            keeper.blameless = self._outside.by_terminate or self.ending.ends_groups
            keeper.tick(now)
        self._scaling.tick(now)
        self._lost_trainers.tick(now, self.ending.trainers, self.ending.in_loop.intersection(self._training))
        for trainer in self._silence.tick(now, self.ending.trainers):
            self._output.note("trainer_silent", trainer=trainer)
        self.checkpoints.tick(now, may_begin=not self.ending.stopping)
        if self._learner and (seconds := self._learner.slow_s(now)):
            self._output.note("sampler_slow", seconds=round(seconds, 1))
        if self.ending.is_over(now) and not self._messages.joining:
            self._finish(abort=self.ending.status or None)
        elif self._outside.at_once:
            self.ending.stop_from_outside(signal.Signals(self._outside.at_once).name, now)
            self._finish(abort=128 + self._outside.at_once)
        elif (reason := self._outside.tick(now)) and not self.ending.stopping:
            self.ending.stop_from_outside(reason, self._outside.by)
            self._tell_all_to_leave()
        elif not self.ending.stopping and (reason := self._leavers.reason(self._training)):
            self._stop(reason)
        elif self.ending.is_due(now):
            alive = {"groups": self.groups.alive, "loaders": self.loaders.groups.alive}
            self._output.note("overdue", **alive, trainers=self.ending.trainers)
            self._finish(abort=self.ending.status)
        elif self.plan.fault_tolerance == "ulfm" and (late := self.ending.end_late(now)):
            self._output.note("overdue", **late, trainers=[])
            for kind, number in ((kind, number) for kind, numbers in late.items() for number in numbers):
                RunFolder(self.plan.run).give_up(number, kind.removesuffix("s"))

    def _state(self) -> dict[str, object]:
        self._output.write_losses()
        state = state_of(self.simulations, self.losses, self._output.figures, self._output.seconds(self._clock()))
        return state | (self._learner.state() if self._learner else {})

    def _keeper_of(self, event: kinds.Event) -> Dispatcher | Loaders:
        of = (event.of_loader, self.loaders), (event.of_inference, self.inference), (event.of_learner, self.learners)
        return next((keeper for yes, keeper in of if yes), self._dispatcher)

    def _on_held(self, event: kinds.Held) -> None:
        simulation = event.simulation
        whole = self.simulations.hold(index_of(event, self.plan.trainers), simulation, event.by_try)
        if whole and not self.simulations.has_failed(simulation):
            self._output.completed(simulation, self.simulations.steps(simulation))

    def _look_at_what_is_settled(self) -> None:
        if self._stream.look(self.ending.stopping):
            self._dispatcher.feed()

    def _on_died(self, event: kinds.Died) -> None:
        keeper = self._keeper_of(event)
        if event.of_solver or keeper is not self._dispatcher:
            return keeper.died(event.index, event.rank_in_group, self._clock())
        trainer = -1 if event.of_server or event.of_mate else index_of(event, self.plan.trainers)
        if not self.ending.trainers or trainer not in (-1, *self.ending.trainers):
            return  # it had finished its work
        living = len(self._training) + (self._leavers.in_order if self._stream.drained else 0)
        may_die = trainer >= 0 and (self._spares.waits(trainer) or self._lost_trainers.one_may_die(living))
        if may_die and not self._first_cause.known:
            self._lose_trainer(trainer)
        else:
            self._first_cause.died(event.rank, self._clock(), self._lost_trainers.few(living) if trainer >= 0 else "")

    def _lose_trainer(self, trainer: int) -> None:
        """Let the other trainers continue without this one, which has died."""
        self.ending.trainer_lost(trainer)
        left, trained = self.ending.trainers, not self._spares.waits(trainer)
        self._lost_trainers.died(trainer, len(self._spares.training(left)), self._clock())
        self._spares.died(trainer, left)
        self._first_cause.lost(trainer)
        self._silence.left(trainer)
        self.checkpoints.trainer_lost(trainer)
        if self.plan.has_stream:
            self._relief.left(trainer)
            self._adoption.lost(trainer, self._spares.not_retired(left), trained)

    @property
    def _training(self) -> list[int]:
        """Trainers that have not left, except those that wait for a place."""
        return self._spares.training(self.ending.trainers)

    def _trainer_failed(self, now: float, final: bool = False) -> bool:
        """End the job if a trainer has died or failed, and the first cause is known or no longer waited for."""
        verdict = self._verdict(now, final)
        if verdict is None:
            return False
        (self._fail if verdict.by_script else self._fail_now)(verdict.error, verdict.log)
        return not verdict.by_script

    def _verdict(self, now: float, final: bool) -> Verdict | None:
        verdict = None if self._told_why else self._first_cause.verdict(now, final)
        if verdict is not None:
            self._told_why = True
            self.ending.conclusion.update({"died": True} if verdict.died else {})
        return verdict

    def _on_status(self, event: kinds.Status) -> None:
        trainer = index_of(event, self.plan.trainers)
        self.ending.status_came(trainer, event.ended)
        self._silence.heard(trainer, self._clock())
        if event.all_drawn:
            self.ending.trainer_trained(trainer)
            self._let_groups_go()
        statistics = self._output.figures.status(trainer, event.statistics, event.waited_us, event.usage)
        if not self.ending.stopping:
            self._idle.status(trainer, event)
        if self.ending.stopping or self._stream.ended or trainer in self._output.figures.lost_trainers:
            return
        found = self._relief.status(trainer, event.starved, event.full, statistics, self.simulations.queue.first_waits)
        relieve(found, self._messages, self._output, "bytes" if self.plan.capacity_in_bytes else "samples")

    def _let_groups_go(self) -> None:
        """Let groups leave if no simulation can have to run again, whichever rank dies."""
        if self._stream.drain():
            self._dispatcher.keeps_groups = False
            self._dispatcher.feed()

    def _on_report(self, event: kinds.Report) -> None:
        self._leavers.reported(event.index, event.values)
        names = [name for name, *_ in event.values]
        if self._spares.joins(event.index, names):
            self._adoption.joined(event.index, self._spares.not_retired(self.ending.trainers))
        came = self._spares.reported(event.index, names)
        if came > 0:
            self.checkpoints.trainer_joined(event.index, event.values)
        elif came < 0:
            self.checkpoints.trainer_lost(event.index, "has left")
            if self.plan.has_stream:
                self._relief.left(event.index)
                self._adoption.retired(event.index, self._spares.not_retired(self.ending.trainers))
        those = self._training, self.ending.trainers, self._clock()
        if why := self._lost_trainers.reported(event.index, event.values, *those):
            self._fail(why, None)
        self._output.reported(event.index, event.values)

    def _on_stop(self, event: kinds.Stop) -> None:
        trainer = index_of(event, self.plan.trainers)
        text = event.text.rstrip(".") or "no reason given"
        self.ending.trainer_left_loop(trainer)
        self._output.note("stop", trainer=trainer, failed=event.failed, reason=text)
        if event.failed:
            self._first_cause.reported(trainer, text, self._clock())
        else:
            self._first_cause.left(trainer, text)
            self._stop(f"trainer {trainer}: {text}")

    def _on_goodbye(self, event: kinds.Goodbye) -> None:
        trainer = index_of(event, self.plan.trainers)
        self.ending.trainer_left(trainer, self._clock())
        self._silence.left(trainer)
        if self._spares.waits(trainer):
            self.ending.trainer_trained(trainer)
            return self._output.note("trainer_left", trainer=trainer)
        self._leavers.left(trainer)
        if how := self._leavers.how(trainer):
            self._first_cause.left(trainer, how)
            if self._leavers.leaves_rows(trainer):
                self.ending.left_early(f"trainer {trainer} left the job {how}")
        elif not self.plan.has_stream:
            self.ending.trainer_trained(trainer)
        self._output.note("trainer_left", trainer=trainer)
        if not (self._stream.ended or self.ending.stopping or self._first_cause.known):
            self._stop(f"trainer {trainer} left before the end of the stream")
        elif not self.ending.trainers:
            self._let_groups_go()

    def _on_record_stopped(self, event: kinds.RecordStopped) -> None:
        self._output.figures.record_stopped.append(event.text)
        self.ending.record_stopped(event.text)
        self._output.note("record_stopped", trainer=index_of(event, self.plan.trainers), reason=event.text)

    def _on_error(self, event: kinds.Error) -> None:
        self._output.note("error", rank=event.rank, error=event.text)
        keeper = self._keeper_of(event)
        lost = keeper.groups.lost if isinstance(keeper, Loaders) else self.groups.lost if event.of_solver else ()
        if event.index in lost:
            return  # errors that follow from the loss are not the program's fault
        self.ending.fail_at_once(self._clock(), event.text, log_of(event, self.plan))
        self._dispatcher.stopping = True

    def _stop(self, reason: str) -> None:
        if self.ending.stop(self._clock(), reason):
            self._tell_all_to_leave()

    def _fail(self, error: str, log: Path | None) -> None:
        self._output.note("error", error=error)
        if self.ending.fail(self._clock(), error, log):
            self._tell_all_to_leave()

    def _tell_all_to_leave(self) -> None:
        self._dispatcher.stopping = True
        self._messages.stop()
        self._dispatcher.feed()

    def _fail_now(self, error: str, log: Path | None = None) -> None:
        self.ending.fail(self._clock(), error, log)
        self._finish(abort=1)

    def _finish(self, abort: int | None) -> None:
        """End the job: in order if `abort` is None, else by ending the remaining ranks with this status."""
        if verdict := self._verdict(self._clock(), final=True):
            self.ending.fail(self._clock(), verdict.error, verdict.log)
            abort = 1
        if abort is None:
            self._messages.all_gone()
        self.checkpoints.close(self._clock())
        self._output.end(self.ending.conclude(), self._clock(), at_once=abort is not None)
        if abort is not None:
            RunFolder(self.plan.run).note_over()
            self._messages.abort(abort)
        self._over = True
        with contextlib.suppress(MpidataError):  # no rank waits for it any more
            self._messages.close()
