"""How a job ends: by itself or from outside, who has left, how long it waits for the others, with what conclusion."""

from __future__ import annotations

import signal
from pathlib import Path

from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.stop import StopRequest, read_stop
from mpidata.scheduler.coordinator import Coordinator
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.figures.summary import Conclusion
from mpidata.scheduler.groups import Groups
from mpidata.scheduler.messages import Messages
from mpidata.scheduler.simulations import Simulations

__all__ = ["Ending", "OutsideStop", "Stream"]

_LOOK_S = 0.5


class Ending:
    """Keeps track of who has left, and decides when to stop waiting.

    A job that nobody stops is over when all trainers and groups have left, however long the training takes. After a
    stop there is a limit: 7 s, or 2.5 s once it has failed. After that the job waits neither for groups (a long step
    does not check whether the job continues) nor for the trainers of a failed job. A trainer that has left its loop by
    itself may take all the time it needs, for example to save its model, and only the groups are ended. A trainer that
    has not left its loop hangs, and the job has failed.

    The figures of a trainer are final with the first status after its goodbye, which arrives within 0.2 s.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    groups, loaders : Groups
        Those that are alive have not left yet.
    others : sequence of Groups
        The same for inference ranks and learners.

    Attributes
    ----------
    conclusion : Conclusion
        How the job ends, as known so far. The first error counts; an error takes precedence over a stop.
    stopping : bool
        Whether the job ends early.

    Notes
    -----
    Not thread-safe. Times are in seconds of a monotonic clock.
    """

    def __init__(self, trainers: int, groups: Groups, loaders: Groups, *others: Groups) -> None:
        self.conclusion: Conclusion = {"status": "complete", "error": None, "reason": None}
        self.stopping = False
        self._trainers_in_loop = set(range(trainers))
        self._trainers = set(range(trainers))
        self._untrained = set(range(trainers))
        self._groups = groups
        self._loaders = loaders
        self._others = others
        self._by = float("inf")
        self._figures: set[int] = set()
        self._figures_by = 0.0
        self._from_outside = self._failed_then = False
        self._outside_by = float("inf")
        self._unrecorded = ""
        self._ended: dict[str, set[int]] = {"groups": set(), "loaders": set()}

    @property
    def trainers(self) -> list[int]:
        """Trainers that have not left."""
        return sorted(self._trainers)

    @property
    def in_loop(self) -> set[int]:
        """Trainers whose loops over the stream may continue."""
        return self._trainers_in_loop

    @property
    def status(self) -> int:
        """Exit status of the job's processes: 1 if it has failed, else 0."""
        return int(self.conclusion["status"] == "failed")

    def trainer_left_loop(self, trainer: int) -> None:
        """Note that a trainer has left its loop, or knows that the stream is over."""
        self._trainers_in_loop.discard(trainer)

    def trainer_trained(self, trainer: int) -> None:
        """Note that a trainer has drawn all its batches."""
        self._untrained.discard(trainer)

    def trainer_left(self, trainer: int, now: float) -> None:
        """Note that a trainer has said goodbye."""
        self._trainers_in_loop.discard(trainer)
        self._trainers.discard(trainer)
        if self._from_outside and not self._trainers:
            self._limit(now + deadlines.STOP_S)  # a long step of a solver does not check whether the job continues
        self._figures.add(trainer)
        self._figures_by = now + deadlines.LAST_FIGURES_S

    def trainer_lost(self, trainer: int) -> None:
        """Note that a trainer has died, and that the others continue."""
        for those in (self._trainers_in_loop, self._trainers, self._untrained, self._figures):
            those.discard(trainer)

    def status_came(self, trainer: int, ended: bool = False) -> None:
        """Note that a trainer's figures have arrived, and whether it knows that the stream is over."""
        self._figures.discard(trainer)
        if ended:
            self.trainer_left_loop(trainer)

    def loaders_leave(self, now: float) -> None:
        """Note that the loaders are to leave: if they are the last, they have as long as after a stop."""
        if not (self._groups.alive or self._trainers):
            self._by = min(self._by, now + deadlines.STOP_S)

    def stop(self, now: float, reason: str) -> bool:
        """End the job early, without an error; returns whether it was not stopping already."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"] = "stopped"
            self.conclusion["reason"] = reason
        return self._limit(now + deadlines.STOP_S)

    def left_early(self, reason: str) -> None:
        """Note that a trainer has left before the others, which continue without it."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"], self.conclusion["reason"] = "stopped", reason

    def stop_from_outside(self, reason: str, by: float) -> None:
        """End the job by a deadline set from outside; a late trainer is ended, which is not an error."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"] = "stopped"
            self.conclusion["reason"] = reason
        self._from_outside, self._outside_by = True, by
        self._limit(by)

    def fail(self, now: float, error: str, log: Path | None = None) -> bool:
        """End the job because of an error, found in this log; returns whether it was not stopping already.

        Ranks that still can leave in order may do so. In a job that is stopped from outside this is not a failure: a
        script whose batches end in the middle may raise, and resumes from the checkpoint later.
        """
        if self._from_outside:
            self._failed_then = True
            return self._limit(now + deadlines.FAIL_S)
        self.conclusion["status"] = "failed"
        if self.conclusion["error"] is None:
            self.conclusion["error"] = error
            if log is not None:
                self.conclusion["log"] = str(log)
        return self._limit(now + deadlines.FAIL_S)

    def fail_at_once(self, now: float, error: str, log: Path | None = None) -> None:
        """End the job because of an error, after a short time in which other ranks may report theirs."""
        self.fail(now, error, log)
        self._limit(now + deadlines.MORE_ERRORS_S)

    def record_stopped(self, sentence: str) -> None:
        """Note that samples are missing from the record: the job continues, but its status will be failed."""
        self._unrecorded = self._unrecorded or sentence

    def conclude(self) -> Conclusion:
        """Return the conclusion, at the end of the job. A stop that has interrupted nothing does not count."""
        if self._from_outside and not (self._untrained or self._trainers or self._failed_then):
            self.conclusion["status"], self.conclusion["reason"] = "complete", None
            self._from_outside = False
        if self._unrecorded and self.conclusion["error"] is None:
            self.conclusion["error"] = self._unrecorded
            if not self._from_outside:  # else it is resumed later
                self.conclusion["status"], self.conclusion["in_order"] = "failed", True
        return self.conclusion

    def is_over(self, now: float) -> bool:
        """Whether all ranks but the servers have left, and the last figures have arrived."""
        return not self._any_alive and self._trainers_final(now)

    def is_due(self, now: float) -> bool:
        """Whether to stop waiting and end the remaining ranks. May change the conclusion to failed."""
        if now < self._by:
            return False
        if self._from_outside:
            self._name_late(now)
            return True
        if self.conclusion["status"] != "failed" and self._trainers_in_loop:
            self.fail(now, self._stuck())
        return self.conclusion["status"] == "failed" or (self._any_alive and self._trainers_final(now))

    def end_late(self, now: float) -> dict[str, list[int]]:
        """Return late `groups` and `loaders` while scripts continue, each once; {} if there are none."""
        if now < self._by or self._from_outside or self.conclusion["status"] == "failed" or not self._trainers:
            return {}
        alive = {"groups": self._groups.alive, "loaders": self._loaders.alive}
        late = {kind: [one for one in alive[kind] if one not in self._ended[kind]] for kind in alive}
        for kind in alive:
            self._ended[kind].update(late[kind])
        return late if any(late.values()) else {}

    @property
    def ends_groups(self) -> bool:
        """Whether late groups or loaders were ended while scripts continue."""
        return any(self._ended.values())

    @property
    def _any_alive(self) -> bool:
        return any(those.alive for those in (self._groups, self._loaders, *self._others))

    def _trainers_final(self, now: float) -> bool:
        return not self._trainers and (not self._figures or now >= self._figures_by)

    def _limit(self, by: float) -> bool:
        first = not self.stopping
        self.stopping = True
        self._by = min(self._by, by)
        return first

    def _name_late(self, now: float) -> None:
        if self._trainers and now >= self._outside_by and self.conclusion["status"] == "stopped":
            was = "was" if len(self._trainers) == 1 else "were"
            late = f"{self._late(self._trainers)} had not ended in time, and {was} ended"
            self.conclusion["reason"] = f"{self.conclusion['reason']}; {late}"

    @staticmethod
    def _late(trainers: set[int]) -> str:
        late = sorted(trainers)
        return f"trainer {late[0]}" if len(late) == 1 else f"trainers {', '.join(map(str, late))}"

    def _stuck(self) -> str:
        return (
            f"The job was stopped ({self.conclusion['reason']}), but {self._late(self._trainers_in_loop)} did not "
            f"leave within {deadlines.STOP_S:g} s, perhaps because a collective of torch.distributed waits for the "
            "others. Leave the loop after the same batch on all trainers."
        )


class OutsideStop:
    """Detects a signal, or the file `stop` that `mpidata run` writes into the run folder when it receives one.

    SIGINT to this process ends the job at once. The file, SIGTERM and SIGUSR1 end it after a checkpoint, if one is
    requested, which may take until `plan.checkpoint_within_s` is nearly over.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    checkpoints : Coordinator
        Writes the checkpoint.

    Attributes
    ----------
    by : float
        When the job must have ended, by the clock of `tick`; infinity while there is no stop.

    Notes
    -----
    Not thread-safe, but `interrupt` may be called from a signal handler.
    """

    def __init__(self, plan: Plan, checkpoints: Coordinator) -> None:
        self.by = float("inf")
        self._plan = plan
        self._checkpoints = checkpoints
        self._file = RunFolder(plan.run).stop
        self._signal = 0
        self._name = ""
        self._before = 0
        self._next_look = 0.0

    @property
    def at_once(self) -> int:
        """Number of a signal that ends the job at once; 0 without one."""
        return self._signal if self._signal == signal.SIGINT else 0

    @property
    def by_terminate(self) -> bool:
        """Whether this process received SIGTERM: its sender, for example a batch system, ends all ranks."""
        return self._signal == signal.SIGTERM

    def interrupt(self, number: int, frame: object = None) -> None:
        """Keep a signal. To be installed as its handler."""
        self._signal = number

    def tick(self, now: float) -> str:
        """Look for a stop; returns why the ranks are to leave now, else "". To be called often."""
        if not self._name:
            request = self._look(now)
            if request is None:
                return ""
            self._name = request.name
            self.by = now + self._plan.checkpoint_within_s
            if not request.checkpoint:
                return self._name
            self._before = self._checkpoints.last_valid
            self._checkpoints.want(now)
            return ""
        if self._checkpoints.last_valid > self._before:
            written = self._checkpoints
            return f"{self._name}: checkpoint {written.last_valid} of batch {written.last_batch} was written"
        if not self._checkpoints.busy:
            return f"{self._name}: no checkpoint was written: {self._checkpoints.failure or 'there was no time'}"
        if now >= self.by - deadlines.LEAVE_SHARE * self._plan.checkpoint_within_s:
            return f"{self._name}: no checkpoint could be written in time"
        return ""

    def _look(self, now: float) -> StopRequest | None:
        if self._signal:
            return StopRequest(signal.Signals(self._signal).name)
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_S
        return read_stop(self._file)


class Stream:
    """Informs the trainers when they hold all validation samples, and when no more will come; again after a death.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    simulations : Simulations
        Their states.
    messages : Messages
        To the trainers.
    output : RunOutput
        The run's output.

    Attributes
    ----------
    ended : bool
        Whether the trainers know that no more samples will come.
    drained : bool
        Whether the trainers have drawn all samples, so that no death can change that the stream has ended.

    Notes
    -----
    Not thread-safe.
    """

    def __init__(self, plan: Plan, simulations: Simulations, messages: Messages, output: RunOutput) -> None:
        self.ended = self.drained = not plan.has_stream
        self._validated = plan.validation == 0
        self._validation = plan.validation
        self._simulations = simulations
        self._messages = messages
        self._output = output

    def look(self, stopping: bool) -> bool:
        """Inform the trainers; returns whether the stream has just ended, which it does not if `stopping`."""
        if self._simulations.interrupted:
            return False
        if not self._validated and self._simulations.first_settled == self._validation:
            self._validated = True
            self._messages.validation()
        if self.ended or not self._simulations.all_settled or stopping:
            return False
        self.ended = True
        self._output.note("end_of_stream")
        self._messages.end_of_stream()
        return True

    def reopen(self) -> None:
        """Note that a trainer has died, so that samples may have to be sent again."""
        self.ended, self._validated = self.drained, self._validation == 0

    def drain(self) -> bool:
        """Note that the trainers have drawn all samples; returns whether this was not known."""
        news, self.ended, self.drained = not self.drained, True, True
        return news
