"""The files of a run: the figures during the run and at its end, and the events."""

from __future__ import annotations

import time
from collections.abc import Iterable

from mpidata.figures.loggers import load_loggers
from mpidata.loading.figures import PREFIX, PUSHES
from mpidata.native.event import Closed
from mpidata.run.deadlines import LOGGERS_AT_ONCE_S, LOGGERS_S
from mpidata.run.event_log import Events, as_json, write_json
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.side_channel import STARTED, say_aside
from mpidata.sampling.parameters_file import mark_cancelled
from mpidata.scheduler.deaths.lost_groups import Losses
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.figures.writer import TIMES, Metrics
from mpidata.scheduler.simulations import Simulations

__all__ = ["RunOutput"]

_WELL_S = 5.0  # without a failure, after which the disk counts as working again
_PROGRESS_S = 0.5


class RunOutput:
    """The files events.jsonl, progress.json and summary.json of a run, and the scheduler's log.

    Parameters
    ----------
    plan : Plan
        The job's plan; its run folder exists.
    simulations, losses : Simulations, Losses
        Read whenever figures are written.
    now : float
        The time in seconds of a monotonic clock, as are the other times.

    Notes
    -----
    Not thread-safe. No method raises OSError, because a run folder that cannot be written must not end the job. The
    failure is printed once, and what is missing is written when there is room again.
    """

    def __init__(self, plan: Plan, simulations: Simulations, losses: Losses, now: float) -> None:
        self.figures = Figures(plan.trainers, plan.capacity, in_bytes=bool(plan.capacity_in_bytes))
        self.figures.span, self.figures.servers, self.figures.spares = plan.span, plan.servers, plan.trainer_spares
        self.figures.replicas = (plan.trainers, plan.ranks_per_replica) if plan.ranks_per_replica > 1 else None
        self._plan = plan
        self._simulations = simulations
        self._losses = losses
        self._short_said = False
        self._started = self._next_progress = now
        self._said = False
        self._unwritten: OSError | None = None  # why the progress could not be written the last time
        self._failed_at = now
        self._events = Events(RunFolder(plan.run).events)
        self._loggers = load_loggers(RunFolder(plan.run))
        self._metrics = Metrics(RunFolder(plan.run).metrics)
        self.dispatched = self._events.of_numbers("dispatch", simulation="%d", group="%d")
        self.completed = self._events.of_numbers("simulation_complete", simulation="%d", steps="%d")
        self.cancelled = self._events.of_numbers("simulation_cancelled", simulation="%d", steps="%d")
        seconds = dict.fromkeys(TIMES, "%.4f")
        self._ran = self._events.of_numbers("simulation_run", simulation="%d", group="%d", steps="%d", **seconds)
        self.write = self._events.write
        self.note = self._events.note

    def start(self) -> None:
        """Write the event that all ranks have joined."""
        plan = self._plan
        sizes = {"trainers": plan.trainers, "groups": plan.groups, "ranks_per_group": plan.ranks_per_group}
        sizes |= {"loaders": plan.loaders} if plan.loaders else {}
        sizes |= {"inference": plan.inference} if plan.inference else {}
        sizes |= {"learner": plan.learner} if plan.learner else {}
        self.note("start", world=plan.world, **sizes, simulations=plan.simulations, validation=plan.validation)
        if self._events.problem is not None:
            say_aside(STARTED)
        self._loggers.start()

    def seconds(self, now: float) -> float:
        """Return how long the run has taken, including earlier starts."""
        return self.figures.before_s + now - self._started

    def ran(self, group: int, event: Closed) -> None:
        """Process how a group has spent its time on the simulation that it closes, if any."""
        if event.simulation >= 0 and event.total_us:
            self._ran(event.simulation, group, event.steps, *self.figures.groups.add(group, event))

    def closed(self, simulation: int, steps: int) -> None:
        """Process a simulation's number of steps; the first simulation shorter than a window is an event."""
        if self.figures.span and steps <= self.figures.span and not self._short_said:
            self.note("short_simulation", simulation=simulation, steps=steps, needs=self.figures.span + 1)
            self._short_said = True

    def reported(self, trainer: int, values: Iterable[tuple[str, int, float]]) -> None:
        """Process a trainer's report: name, batch and value of each; the end of an epoch is an event."""
        told = list(values)
        self._loggers.write_reports(time.time(), (value for value in told if "." not in value[0]))
        for name, _, value in told:
            if name == PUSHES:
                self.figures.pushes[trainer] = int(value)
            elif not name.startswith(PREFIX):
                self.figures.report(name, value)
            elif (ended := self.figures.loaded.take(trainer, name.removeprefix(PREFIX), value)) is not None:
                self.note("epoch", **ended)

    def keep(self, now: float) -> None:
        """Write the events to their file, and twice a second the figures to theirs, once they are known."""
        self._events.flush()
        if not self.figures.are_known:
            return self._say_once(self._events.problem)
        if self._metrics.is_due(now - self._started):
            self._write_metrics(now)
        if now >= self._next_progress:
            self._next_progress = now + _PROGRESS_S
            self._unwritten = self._write_progress(now)
        problem = self._events.problem or self._unwritten
        self._failed_at = now if problem is not None else self._failed_at
        self._say_once(problem)
        if self._said and now - self._failed_at > _WELL_S:
            self._said = False
            say_aside(f"mpidata: {self._plan.run} can be written again.")

    def end(self, conclusion: Conclusion, now: float, at_once: bool) -> None:
        """Write the last event and figures, then the summary, which is printed if it cannot be written.

        Waits for the loggers, only briefly if ranks are to be ended `at_once`.
        """
        seconds = now - self._started
        self._loggers.close(conclusion["status"], LOGGERS_AT_ONCE_S if at_once else LOGGERS_S)
        self._write_progress(now)
        self._write_metrics(now)
        self.write_losses()
        if not at_once:  # else a sampler may be adding rows
            self._mark_cancelled()
        self.note("end", **conclusion)
        summary = self.figures.summary(self._plan.run, conclusion, self._simulations, self._losses, seconds)
        try:
            write_json(RunFolder(self._plan.run).summary, summary, durable=True)
        except OSError as error:
            self._say_once(error)
            say_aside(as_json(summary))

    def write_losses(self) -> None:
        """Write losses.csv, if any losses are known."""
        try:
            self.figures.losses.write(RunFolder(self._plan.run).losses)
        except OSError as error:
            self._say_once(error)

    def _mark_cancelled(self) -> None:
        cancelled = self._simulations.cancelled
        try:
            if cancelled:
                mark_cancelled(RunFolder(self._plan.run).parameters, set(cancelled), len(self._plan.parameters))
        except OSError as error:
            self._say_once(error)
        except ValueError:  # the file was changed
            pass

    def _say_once(self, problem: OSError | None) -> None:
        if problem is not None and not self._said:
            self._said = True
            say_aside(
                f"mpidata: {self._plan.run} cannot be written: {problem.strerror}. The job continues, and "
                "writes its files when this is possible again. Free disk space."
                if self._plan.run.is_dir()
                else f"mpidata: {self._plan.run} was removed while the job runs."
            )

    def _write_metrics(self, now: float) -> None:
        self._metrics.write(self.figures.metrics(self._simulations, now - self._started))

    def _write_progress(self, now: float) -> OSError | None:
        try:
            progress = self.figures.progress(self._simulations, now - self._started)
            write_json(RunFolder(self._plan.run).progress, progress)
        except OSError as error:
            return error
        return None
