"""How a job ends: by itself or from outside, who has left, how long the others are waited for, with what conclusion."""

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
    """Keeps who has left, and decides when to wait no longer.

    A job that nobody stops is over when all trainers and groups have left, however long the training takes. After a
    stop there is a limit: 7 s, or 2.5 s once it has failed. Past it the groups are not waited for (a long step does not
    look whether the job goes on), nor are the trainers of a failed job. A trainer that has left its loop by itself may
    take all the time it needs afterwards, to save its model say, and only the groups are ended. One that has not hangs,
    and the job has failed.

    The figures of a trainer are final with the first status after its goodbye, which comes within 0.2 s.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    groups, loaders : Groups
        Those that are alive have not left.
    others : sequence of Groups
        Likewise: inference ranks, learners.

    Attributes
    ----------
    conclusion : Conclusion
        How the job ends, as known so far. The first error counts; an error counts more than a stop.
    stopping : bool
        Whether the job ends before its time.

    Notes
    -----
    For one thread. Times are in seconds, of a clock that never goes back.
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
        """Trainers whose loops over the stream may go on."""
        return self._trainers_in_loop

    @property
    def status(self) -> int:
        """Exit status of the job's processes: 1 if it has failed, else 0."""
        return int(self.conclusion["status"] == "failed")

    def trainer_left_loop(self, trainer: int) -> None:
        """Note that a trainer has left its loop, or knows that the stream is over."""
        self._trainers_in_loop.discard(trainer)

    def trainer_trained(self, trainer: int) -> None:
        """Note that a trainer has had all batches that there were for it."""
        self._untrained.discard(trainer)

    def trainer_left(self, trainer: int, now: float) -> None:
        """Note that a trainer has said goodbye."""
        self._trainers_in_loop.discard(trainer)
        self._trainers.discard(trainer)
        if self._from_outside and not self._trainers:
            self._limit(now + deadlines.STOP_S)  # a long step of a solver does not look whether the job goes on
        self._figures.add(trainer)
        self._figures_by = now + deadlines.LAST_FIGURES_S

    def trainer_lost(self, trainer: int) -> None:
        """Note that a trainer has died, and that the others go on."""
        for those in (self._trainers_in_loop, self._trainers, self._untrained, self._figures):
            those.discard(trainer)

    def status_came(self, trainer: int, ended: bool = False) -> None:
        """Note that a trainer's figures have come, and whether it knows that the stream is over."""
        self._figures.discard(trainer)
        if ended:
            self.trainer_left_loop(trainer)

    def loaders_leave(self, now: float) -> None:
        """Note that the loaders are to leave: where they are the last, they have the time of a stop for that."""
        if not (self._groups.alive or self._trainers):
            self._by = min(self._by, now + deadlines.STOP_S)

    def stop(self, now: float, reason: str) -> bool:
        """End the job before its time, though nothing is wrong; returns whether it was not stopping already."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"] = "stopped"
            self.conclusion["reason"] = reason
        return self._limit(now + deadlines.STOP_S)

    def left_early(self, reason: str) -> None:
        """Note that a trainer has left before the others, who go on without it."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"], self.conclusion["reason"] = "stopped", reason

    def stop_from_outside(self, reason: str, by: float) -> None:
        """End the job because somebody wants it to end by then; a trainer that is late is ended and not at fault."""
        if self.conclusion["status"] == "complete":
            self.conclusion["status"] = "stopped"
            self.conclusion["reason"] = reason
        self._from_outside, self._outside_by = True, by
        self._limit(by)

    def fail(self, now: float, error: str, log: Path | None = None) -> bool:
        """End the job because of an error, which this log is about; returns whether it was not stopping already.

        The ranks may leave in order as far as they still can. Of a job that somebody wants to end it is no failure: a
        script whose batches end in the middle may raise, and goes on from the checkpoint later.
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
        """End the job because of an error, after a moment in which other ranks may report theirs."""
        self.fail(now, error, log)
        self._limit(now + deadlines.MORE_ERRORS_S)

    def record_stopped(self, sentence: str) -> None:
        """Take note that samples are missing from the record: the job goes on as it would, but has failed then."""
        self._unrecorded = self._unrecorded or sentence

    def conclude(self) -> Conclusion:
        """Return the conclusion, at the end of the job. A stop that has cut nothing short was none."""
        if self._from_outside and not (self._untrained or self._trainers or self._failed_then):
            self.conclusion["status"], self.conclusion["reason"] = "complete", None
            self._from_outside = False
        if self._unrecorded and self.conclusion["error"] is None:
            self.conclusion["error"] = self._unrecorded
            if not self._from_outside:  # else it goes on later
                self.conclusion["status"], self.conclusion["in_order"] = "failed", True
        return self.conclusion

    def is_over(self, now: float) -> bool:
        """Whether all ranks but the servers have left, and the last figures have come."""
        return not self._any_alive and self._trainers_final(now)

    def is_due(self, now: float) -> bool:
        """Whether to wait no longer and end the ranks that are left. May turn the conclusion into failed."""
        if now < self._by:
            return False
        if self._from_outside:
            self._name_late(now)
            return True
        if self.conclusion["status"] != "failed" and self._trainers_in_loop:
            self.fail(now, self._stuck())
        return self.conclusion["status"] == "failed" or (self._any_alive and self._trainers_final(now))

    def end_late(self, now: float) -> dict[str, list[int]]:
        """Give groups and loaders, by these names, that are late while scripts go on, each once; {} for none."""
        if now < self._by or self._from_outside or self.conclusion["status"] == "failed" or not self._trainers:
            return {}
        alive = {"groups": self._groups.alive, "loaders": self._loaders.alive}
        late = {kind: [one for one in alive[kind] if one not in self._ended[kind]] for kind in alive}
        for kind in alive:
            self._ended[kind].update(late[kind])
        return late if any(late.values()) else {}

    @property
    def ends_groups(self) -> bool:
        """Whether late groups or loaders were ended while scripts go on."""
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
            f"leave within {deadlines.STOP_S:g} s: perhaps waiting for the others in a collective of "
            "torch.distributed. Leave the loop after the same batch on all trainers."
        )


class OutsideStop:
    """Notices a signal, or the file `stop` that `mpidata run` writes into the run folder when it gets one.

    SIGINT to this process ends the job at once; what the file asks for, SIGTERM and SIGUSR1 end it after a checkpoint,
    if one is wanted, for which there is time until `plan.checkpoint_within_s` is nearly over.

    Parameters
    ----------
    plan : Plan
        Of the job.
    checkpoints : Coordinator
        Takes the checkpoint.

    Attributes
    ----------
    by : float
        When the job must have ended, of the clock that `tick` is given; infinity while there is no stop.

    Notes
    -----
    For one thread; only `interrupt` may be called from a signal handler.
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
        """Whether SIGTERM has come to this process: what sends it there tells all ranks to end, as batch systems do."""
        return self._signal == signal.SIGTERM

    def interrupt(self, number: int, frame: object = None) -> None:
        """Take a signal. To be installed as its handler."""
        self._signal = number

    def tick(self, now: float) -> str:
        """Look for a stop; returns the reason for which the ranks are to leave now, else "". To be called often."""
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
            return f"{self._name}: no checkpoint was written, as {self._checkpoints.failure or 'there was no time'}"
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
    """Tells the trainers when they hold all validation samples, and when no more will come; again after a death.

    Parameters
    ----------
    plan : Plan
        Of the job.
    simulations : Simulations
        Their states.
    messages : Messages
        To the trainers.
    output : RunOutput
        Of the run.

    Attributes
    ----------
    ended : bool
        Whether they know that no more will come.
    drained : bool
        Whether they have had all that came, if anything, so that this is the end whoever dies.

    Notes
    -----
    For one thread.
    """

    def __init__(self, plan: Plan, simulations: Simulations, messages: Messages, output: RunOutput) -> None:
        self.ended = self.drained = not plan.has_stream
        self._validated = plan.validation == 0
        self._validation = plan.validation
        self._simulations = simulations
        self._messages = messages
        self._output = output

    def look(self, stopping: bool) -> bool:
        """Tell what is to be told now; returns whether the stream has just ended. One that is stopped does not."""
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
        """Note that a trainer has died, so that samples may have to come again."""
        self.ended, self._validated = self.drained, self._validation == 0

    def drain(self) -> bool:
        """Note that the trainers have had all samples; returns whether that is news."""
        news, self.ended, self.drained = not self.drained, True, True
        return news
