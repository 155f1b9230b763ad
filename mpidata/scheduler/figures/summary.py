"""The figures of a run, during the run and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import NotRequired, TypedDict

from mpidata.loading.figures import Loaded, Rate
from mpidata.native.event import NO_USAGE, STATISTICS, Usage
from mpidata.run.logged_losses import TRAINER_CHANGES
from mpidata.sampling.losses.table import LossTable
from mpidata.scheduler.deaths.lost_groups import Losses
from mpidata.scheduler.figures.usage import used
from mpidata.scheduler.figures.writer import GroupTimes
from mpidata.scheduler.simulations import CANCELLED, COMPLETE, FAILED, RUNNING, Simulations

__all__ = ["CAPACITY", "DRAWN", "RECEIVED", "WINDOWS", "Figures", "Conclusion"]

RECEIVED, VALIDATION, DUPLICATES, DRAWN, FILL, CAPACITY, BYTES, WINDOWS = range(len(STATISTICS))

RECORD = "record."
EXCESS = "budget.excess"
DRAWS = "draws."
HANDED = "handed.over"


class Conclusion(TypedDict):
    """How a run ended: `status` is complete, failed or stopped; `error` a sentence or None; `reason` why it stopped.

    `log` exists if the error is about the output of one rank. `died` exists, and is true, if the run failed because
    processes died: it can be resumed unchanged. `in_order` exists if it failed although all ranks have left in order,
    and may take their time to end.
    """

    status: str
    error: str | None
    reason: str | None
    log: NotRequired[str]
    died: NotRequired[bool]
    in_order: NotRequired[bool]


class Figures:
    """The figures that the trainers have reported.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    capacity : int
        Capacity of one trainer's buffer, in steps.
    in_bytes : bool
        Whether the capacity, and the fill that the trainers report, are in bytes.

    Attributes
    ----------
    first, last : dict
        First and last value of each name the training script reported, in order of arrival over all trainers.
    record : dict
        What the trainers have recorded: `samples`, `skipped` and `slowed_s`; empty before they report it.
    record_stopped : list of str
        Sentences of trainers that could not continue recording.
    losses : LossTable
        Losses by simulation.
    excess : int
        Batches in excess of what `buffer.repeats` allows.
    draws : list of int
        How many samples were drawn 0, 1, 2, ... times; the last of 65 also counts those that were drawn more often.
    handed_over : int
        Samples that went to other trainers because their own drew nothing.
    lost_trainers : list of int
        Trainers that have died in this start while the others continue, in this order.
    joined_trainers, retired_trainers : list of int
        Spares that have taken a place in this start, and trainers that no longer train, in this order.
    earlier : dict
        The same lists for earlier starts of the run, by their names.
    spares : int
        How many trainers, the last ones, wait for a place at the start.
    run_again : int
        Simulations that ran again because a trainer had died, in all starts of the run.
    servers : int
        Number of parameter servers.
    replicas : (int, int) or None
        Number of replicas, and ranks of each, if these are several.
    pushes : dict
        By trainer: its number of pushes to the servers.
    loaders : dict
        How many loaders have `joined` and were `lost`; empty in a job without loaders.
    loaded : Loaded
        Figures of the data from loaders.
    span : int
        Number of steps from the first step of a sample to its last.
    before_s : float
        Seconds of the earlier starts of the run, up to the checkpoint from which it was resumed.
    """

    def __init__(self, trainers: int, capacity: int, in_bytes: bool = False) -> None:
        self.losses = LossTable()
        self.lost_trainers: list[int] = []
        self.joined_trainers: list[int] = []
        self.retired_trainers: list[int] = []
        self.earlier: dict[str, list[int]] = {}
        self.spares = 0
        self.run_again = 0
        self.loaders: dict[str, int] = {}
        self.inference: dict[str, int] = {}
        self.learner: dict[str, int] = {}
        self.servers = 0
        self.replicas: tuple[int, int] | None = None
        self.pushes: dict[int, int] = {}
        self.loaded = Loaded(trainers)
        self.record: dict[str, float] = {}
        self.record_stopped: list[str] = []
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.excess = 0
        self.draws: list[int] = []
        self.handed_over = 0
        self.before_s = 0.0
        self.span = 0
        self._capacity, self._in_bytes = capacity, in_bytes
        self._statistics: list[Sequence[int]] = [(0,) * len(STATISTICS) for _ in range(trainers)]
        self._waited_s = [0.0] * trainers
        self._usage = [NO_USAGE] * trainers
        self._rate = Rate()
        self._unknown: set[int] = set()  # trainers of a resumed run that have not reported what they restored
        self.groups = GroupTimes()

    def resume(self) -> None:
        """Note that the trainers resume from a checkpoint, and will report what they restored."""
        self._unknown = set(range(len(self._statistics)))

    @property
    def are_known(self) -> bool:
        """Whether each trainer has reported what it restored."""
        return not self._unknown

    def status(
        self, trainer: int, statistics: Sequence[int], waited_us: int = 0, usage: Usage = NO_USAGE
    ) -> Sequence[int]:
        """Store a trainer's latest statistics, int64 in the order of STATISTICS; returns a copy."""
        self._waited_s[trainer], self._usage[trainer] = round(waited_us / 1e6, 4), usage
        copy = self._statistics[trainer] = tuple(statistics)
        if trainer in self._unknown:
            self._unknown.remove(trainer)
            self._rate.leave_out(copy[RECEIVED])
        return copy

    def had(self, trainer: int, batches: int, of_stream: bool) -> None:
        """Note how many batches a trainer that has died had drawn: it may not have reported the last ones."""
        if of_stream:
            told = list(self._statistics[trainer])
            told[DRAWN] = max(told[DRAWN], batches)
            self._statistics[trainer] = tuple(told)
        else:
            self.loaded.had(trainer, batches)

    def report(self, name: str, value: float) -> None:
        """Store a value that the training script reported, or a sum of the record: `record.<what>`."""
        if name.startswith(RECORD):
            what = name.removeprefix(RECORD)
            self.record[what] = round(self.record.get(what, 0) + value, 3)
            return
        if name == EXCESS:
            self.excess = int(value)
            return
        if name == HANDED:
            self.handed_over += int(value)
            return
        if name.startswith(DRAWS):
            times = int(name.removeprefix(DRAWS))
            self.draws += [0] * (times + 1 - len(self.draws))
            self.draws[times] += int(value)
            return
        self.first.setdefault(name, value)
        self.last[name] = value

    def per_trainer(self, which: int) -> list[int]:
        """Return one of the statistics (RECEIVED, ...) of each trainer."""
        return [statistics[which] for statistics in self._statistics]

    def changes(self) -> dict[str, list[int]]:
        """Return the lists of TRAINER_CHANGES of all starts of the run, without empty ones."""
        whole = {name: [*self.earlier.get(name, []), *getattr(self, name)] for name in TRAINER_CHANGES}
        return {name: trainers for name, trainers in whole.items() if trainers}

    def _trainers(self) -> list[str]:
        """Return for each trainer whether it trains, is dead, has left, or waits as a spare."""
        count = len(self._statistics)
        says = dict.fromkeys(range(count), "trains") | dict.fromkeys(range(count - self.spares, count), "spare")
        says |= dict.fromkeys(self.joined_trainers, "trains") | dict.fromkeys(self.retired_trainers, "left")
        return list((says | dict.fromkeys(self.lost_trainers, "dead")).values())

    def _held(self, which: int) -> list[int]:
        """Return one of the statistics about the contents of buffers: 0 for trainers that are gone."""
        gone = {*self.lost_trainers, *self.retired_trainers}
        return [0 if one in gone else value for one, value in enumerate(self.per_trainer(which))]

    def _fill(self) -> list[float]:
        return [round(fill / self._capacity, 4) for fill in self._held(FILL)]

    def progress(self, simulations: Simulations, seconds: float) -> dict[str, object]:
        """Return the contents of progress.json, `seconds` after the start, with the recent samples per second."""
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
                **({"cancelled": totals[CANCELLED]} if totals[CANCELLED] else {}),
            },
            "samples": {
                "received": received,
                "per_second": self._rate.at(seconds, received),
                "validation": sum(self.per_trainer(VALIDATION)),
                "per_trainer": per_trainer,
            },
            "trainers": self._trainers(),
            "batches": self.per_trainer(DRAWN),
            "fill": self._fill(),
            "capacity": self._capacity,
            "capacity_in_bytes": self._in_bytes,
            "present": self._held(WINDOWS),
            "bytes": self.bytes,
            "report": dict(self.last),
            "training": self._training(),
            "seconds": round(self.before_s + seconds, 3),
            **({"loaded": loaded} if loaded else {}),
            **self.changes(),
        }

    def metrics(self, simulations: Simulations, seconds: float) -> dict[str, object]:
        """Return a line of metrics.jsonl, `seconds` after the start."""
        states = {"running": RUNNING, "complete": COMPLETE, "failed": FAILED}
        if simulations.totals[CANCELLED]:
            states["cancelled"] = CANCELLED
        return {
            "seconds": round(self.before_s + seconds, 3),
            "received": self.per_trainer(RECEIVED),
            "drawn": self.per_trainer(DRAWN),
            "fill": self._fill(),
            "waited_s": list(self._waited_s),
            "bytes": self.per_trainer(BYTES),
            "simulations": {name: simulations.totals[state] for name, state in states.items()},
            "groups": self.groups.figures(),
            "report": dict(self.last),
            **({"loaded": loaded} if (loaded := self.loaded.metrics()) else {}),
            **used(self._usage, self.groups.usage),
        }

    @property
    def bytes(self) -> int:
        """Total size of the fields received."""
        return sum(self.per_trainer(BYTES))

    def summary(
        self, run: Path, conclusion: Conclusion, simulations: Simulations, losses: Losses | None, seconds: float
    ) -> dict[str, object]:
        """Return the contents of summary.json of a run that took `seconds`.

        `requested` also counts the validation simulations. `received` counts distinct training samples.
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
                **({"cancelled": n} if (n := simulations.totals[CANCELLED]) else {}),
                **({"short": short} if (short := _count_short(simulations, self.span)) else {}),
            },
            "lost_groups": losses.groups if losses else 0,
            "retries": losses.retries if losses else [],
            "set_aside": losses.set_aside if losses else [],
            **({"cancelled": cancelled} if (cancelled := simulations.cancelled) else {}),
            "samples": {
                "received": sum(received),
                "validation": sum(self.per_trainer(VALIDATION)),
                "per_trainer": received,
                **({"by_draws": self.draws} if self.draws else {}),
                **({"handed_over": self.handed_over} if self.handed_over else {}),
            },
            "batches": {"per_trainer": self.per_trainer(DRAWN), **({"excess": self.excess} if self.excess else {})},
            "bytes": self.bytes,
            "seconds": round(self.before_s + seconds, 3),
            "training": self._training(),
            **self.changes(),
            **({"run_again": self.run_again} if self.run_again else {}),
            **({"losses": told} if (told := self.losses.summary()) else {}),
            **({"loaders": self.loaders} if self.loaders else {}),
            **({"inference": self.inference} if self.inference else {}),
            **({"learner": self.learner} if self.learner else {}),
            **({"replicas": dict(zip(("count", "ranks"), self.replicas, strict=True))} if self.replicas else {}),
            **({"servers": {"ranks": self.servers, "pushes": sum(self.pushes.values())}} if self.servers else {}),
            **({"loaded": loaded} if (loaded := self.loaded.summary()) else {}),
            **({"record": self.record} if self.record else {}),
        }

    def _training(self) -> dict[str, dict[str, float]]:
        return {name: {"first": first, "last": self.last[name]} for name, first in self.first.items()}


def _count_short(simulations: Simulations, span: int) -> int:
    """Count simulations that are complete but too short for a window, whose last step is `span` after its first."""
    those = range(simulations.count if span else 0)
    return sum(simulations.state(one) == COMPLETE and simulations.steps(one) <= span for one in those)
