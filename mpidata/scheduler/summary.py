"""What a run leaves in its folder: the figures while it goes on and when it has ended, and the events."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from typing_extensions import NotRequired, TypedDict

from mpidata.learning.table import LossTable
from mpidata.loader.figures import PREFIX, Loaded, Rate
from mpidata.loggers.loggers import load_loggers
from mpidata.run.aside import STARTED, say_aside
from mpidata.run.deadlines import LOGGERS_AT_ONCE_S, LOGGERS_S
from mpidata.run.event_log import Events, as_json, write_json
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.scheduler.losses import Losses
from mpidata.scheduler.simulations import COMPLETE, FAILED, RUNNING, Simulations

__all__ = ["DRAWN", "RECEIVED", "Figures", "Conclusion", "Journal"]

# Order of mpidata_statistics in c_api/src/wire/statistics.h.
RECEIVED, VALIDATION, DUPLICATES, DRAWN, FILL, CAPACITY, BYTES, WINDOWS = range(8)

RECORD = "record."
EXCESS = "budget.excess"
DRAWS = "draws."
_PROGRESS_S = 0.5


class Conclusion(TypedDict):
    """How a run ended: `status` is complete, failed or stopped; `error` a sentence or None; `reason` why it stopped.

    `log` is there where the error is about the output of one rank. `died` is there, and true, where it failed because
    processes died: it can be resumed as it is. `in_order` is, where it failed and yet all ranks have left in order, and
    may take their time to end.
    """

    status: str
    error: str | None
    reason: str | None
    log: NotRequired[str]
    died: NotRequired[bool]
    in_order: NotRequired[bool]


class Figures:
    """What the trainers have reported.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    capacity : int
        Of one trainer's buffer, in samples.

    Attributes
    ----------
    first, last : dict
        First and last value of each name the training script reported, in order of arrival over all trainers.
    record : dict
        What the trainers have recorded: `samples`, `skipped` and `slowed_s`; empty before they say so.
    record_stopped : list of str
        Sentences of trainers that could not go on recording.
    losses : LossTable
        By simulation.
    excess : int
        Batches that `buffer.repeats` does not allow.
    draws : list of int
        How many samples were drawn 0, 1, 2, ... times; the last of 65 counts those that were drawn more often, too.
    loaders : dict
        How many have `joined` and were `lost`; empty in a job that has none.
    loaded : Loaded
        What comes from them.
    span : int
        Steps from the first one of a sample to its last.
    before_s, before_bytes : float, int
        What earlier starts of the run had counted at the checkpoint that it goes on from.
    """

    def __init__(self, trainers: int, capacity: int) -> None:
        self.losses = LossTable()
        self.loaders: dict[str, int] = {}
        self.loaded = Loaded(trainers)
        self.record: dict[str, float] = {}
        self.record_stopped: list[str] = []
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.excess = 0
        self.draws: list[int] = []
        self.before_s = 0.0
        self.before_bytes = 0
        self.span = 0
        self._capacity = capacity
        self._statistics: list[Sequence[int]] = [(0,) * 8 for _ in range(trainers)]
        self._rate = Rate()

    def status(self, trainer: int, statistics: Sequence[int]) -> Sequence[int]:
        """Take a trainer's latest statistics, eight int64 in the order of mpidata_statistics; returns a copy."""
        copy = self._statistics[trainer] = tuple(statistics)
        return copy

    def report(self, name: str, value: float) -> None:
        """Take a value that the training script reported, or a sum of the record: `record.<what>`."""
        if name.startswith(RECORD):
            what = name.removeprefix(RECORD)
            self.record[what] = round(self.record.get(what, 0) + value, 3)
            return
        if name == EXCESS:
            self.excess = int(value)
            return
        if name.startswith(DRAWS):
            times = int(name.removeprefix(DRAWS))
            self.draws += [0] * (times + 1 - len(self.draws))
            self.draws[times] += int(value)
            return
        self.first.setdefault(name, value)
        self.last[name] = value

    def per_trainer(self, which: int) -> list[int]:
        """One of the statistics (RECEIVED, ...) of each trainer."""
        return [statistics[which] for statistics in self._statistics]

    def progress(self, simulations: Simulations, seconds: float) -> dict[str, object]:
        """Contents of progress.json, `seconds` after the start. Samples per second are over the last seconds."""
        per_trainer = self.per_trainer(RECEIVED)
        received = sum(per_trainer)
        loaded = self.loaded.progress(seconds)
        totals = simulations.totals
        return {
            "simulations": {
                "requested": simulations.count,
                "running": totals[RUNNING],
                "complete": totals[COMPLETE],
                "failed": totals[FAILED],
            },
            "samples": {
                "received": received,
                "per_second": self._rate.at(seconds, received),
                "validation": sum(self.per_trainer(VALIDATION)),
                "per_trainer": per_trainer,
            },
            "batches": self.per_trainer(DRAWN),
            "fill": [round(fill / self._capacity, 4) for fill in self.per_trainer(FILL)],
            "capacity": self._capacity,
            "present": self.per_trainer(WINDOWS),
            "bytes": self.bytes,
            "report": dict(self.last),
            "training": self._training(),
            "seconds": round(self.before_s + seconds, 3),
            **({"loaded": loaded} if loaded else {}),
        }

    @property
    def bytes(self) -> int:
        """Of the fields received, in all."""
        return self.before_bytes + sum(self.per_trainer(BYTES))

    def summary(
        self, run: Path, conclusion: Conclusion, simulations: Simulations, losses: Losses | None, seconds: float
    ) -> dict[str, object]:
        """Contents of summary.json of a run that took so many seconds.

        `requested` counts the validation simulations too. `received` are distinct training samples.
        """
        received = self.per_trainer(RECEIVED)
        return {
            "name": run.parent.name,
            "run": str(run),
            **conclusion,
            "simulations": {
                "requested": simulations.count,
                "complete": simulations.totals[COMPLETE],
                "failed": simulations.totals[FAILED],
                **({"short": short} if (short := simulations.count_short(self.span)) else {}),
            },
            "lost_groups": losses.groups if losses else 0,
            "retries": losses.retries if losses else [],
            "set_aside": losses.set_aside if losses else [],
            "samples": {
                "received": sum(received),
                "validation": sum(self.per_trainer(VALIDATION)),
                "per_trainer": received,
                **({"by_draws": self.draws} if self.draws else {}),
            },
            "batches": {"per_trainer": self.per_trainer(DRAWN), **({"excess": self.excess} if self.excess else {})},
            "bytes": self.bytes,
            "seconds": round(self.before_s + seconds, 3),
            "training": self._training(),
            **({"losses": told} if (told := self.losses.summary()) else {}),
            **({"loaders": self.loaders} if self.loaders else {}),
            **({"loaded": loaded} if (loaded := self.loaded.summary()) else {}),
            **({"record": self.record} if self.record else {}),
        }

    def _training(self) -> dict[str, dict[str, float]]:
        return {name: {"first": first, "last": self.last[name]} for name, first in self.first.items()}


class Journal:
    """The files events.jsonl, progress.json and summary.json of a run, and the scheduler's log.

    Parameters
    ----------
    plan : Plan
        Of the job; its run folder exists.
    simulations, losses : Simulations, Losses
        Looked up whenever figures are written.
    now : float
        The time, in seconds, of a clock that never goes back; so are the other times.

    Notes
    -----
    For one thread. Nothing raises OSError: a run folder that cannot be written must not end the job. That is said once,
    and what is missing is written when there is room again.
    """

    def __init__(self, plan: Plan, simulations: Simulations, losses: Losses, now: float) -> None:
        self.figures = Figures(plan.trainers, plan.capacity)
        self.figures.span = plan.span
        self._plan = plan
        self._simulations = simulations
        self._losses = losses
        self._short_said = False
        self._started = self._next_progress = now
        self._said = False
        self._events = Events(RunFolder(plan.run).events)
        self._loggers = load_loggers(RunFolder(plan.run))
        self.write_numbers = self._events.write_numbers
        self.note = self._events.note

    def start(self) -> None:
        """Write the event that the ranks have joined."""
        plan = self._plan
        sizes = {"trainers": plan.trainers, "groups": plan.groups, "ranks_per_group": plan.ranks_per_group}
        sizes |= {"loaders": plan.loaders} if plan.loaders else {}
        self.note("start", world=plan.world, **sizes, simulations=plan.simulations, validation=plan.validation)
        if self._events.problem is not None:
            say_aside(STARTED)
        self._loggers.start()

    def seconds(self, now: float) -> float:
        """How long the run has taken, earlier starts included."""
        return self.figures.before_s + now - self._started

    def closed(self, simulation: int, steps: int) -> None:
        """Take the number of steps of a simulation; the first one that is shorter than a window is an event."""
        if self.figures.span and steps <= self.figures.span and not self._short_said:
            self.note("short_simulation", simulation=simulation, steps=steps, needs=self.figures.span + 1)
            self._short_said = True

    def reported(self, trainer: int, values: Iterable[tuple[str, int, float]]) -> None:
        """Take what a trainer reports: name, batch and value of each; the end of an epoch is an event."""
        told = list(values)
        self._loggers.write_reports(time.time(), (value for value in told if "." not in value[0]))
        for name, _, value in told:
            if not name.startswith(PREFIX):
                self.figures.report(name, value)
            elif (ended := self.figures.loaded.take(trainer, name.removeprefix(PREFIX), value)) is not None:
                self.note("epoch", **ended)

    def keep(self, now: float) -> None:
        """Bring the events into their file, and twice a second the figures into theirs."""
        self._events.flush()
        problem = self._events.problem
        if now >= self._next_progress:
            self._next_progress = now + _PROGRESS_S
            problem = self._write_progress(now) or problem
        self._say_once(problem)

    def end(self, conclusion: Conclusion, now: float, at_once: bool) -> None:
        """Write the last event and figures, then the summary, which is printed where it cannot be written.

        Waits for the loggers, shortly where ranks are to be ended `at_once`.
        """
        seconds = now - self._started
        self._loggers.close(conclusion["status"], LOGGERS_AT_ONCE_S if at_once else LOGGERS_S)
        self._write_progress(now)
        self.write_losses()
        self.note("end", **conclusion)
        summary = self.figures.summary(self._plan.run, conclusion, self._simulations, self._losses, seconds)
        try:
            write_json(RunFolder(self._plan.run).summary, summary, durable=True)
        except OSError as error:
            self._say_once(error)
            say_aside(as_json(summary))

    def write_losses(self) -> None:
        """Write losses.csv, where any are known."""
        try:
            self.figures.losses.write(RunFolder(self._plan.run).losses)
        except OSError as error:
            self._say_once(error)

    def _say_once(self, problem: OSError | None) -> None:
        if problem is not None and not self._said:
            self._said = True
            say_aside(
                f"mpidata: {self._plan.run} cannot be written: {problem.strerror}. The job goes on, and writes "
                "its files again when that can be done: make room."
                if self._plan.run.is_dir()
                else f"mpidata: {self._plan.run} was removed while the job runs."
            )

    def _write_progress(self, now: float) -> OSError | None:
        try:
            progress = self.figures.progress(self._simulations, now - self._started)
            write_json(RunFolder(self._plan.run).progress, progress)
        except OSError as error:
            return error
        return None
