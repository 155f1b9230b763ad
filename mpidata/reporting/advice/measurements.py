"""The measurements of a job that show its bottleneck."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mpidata.reporting.reading.history import read_events
from mpidata.reporting.reading.lines import middle_of
from mpidata.reporting.reading.run_snapshot import RunSnapshot
from mpidata.sizes import parse_size

__all__ = ["LongSimulation", "Measured", "TrainerMeasured", "measure"]


_PARTS = ("start_s", "compute_s", "room_s")  # of the time of a simulation


@dataclass(frozen=True)
class TrainerMeasured:
    """A trainer: new samples that it took per second, and the share of time for which its loop waited for data."""

    samples_s: float
    waited: float
    number: int = 0

    @property
    def most_s(self) -> float:
        """Samples per second that it would take if it never waited."""
        return self.samples_s / max(1.0 - self.waited, 0.01)


@dataclass(frozen=True)
class LongSimulation:
    """The last simulation, if the other groups had nothing left to do for long while it ran.

    Attributes
    ----------
    simulation : int
        Its id.
    seconds, others_s : float
        Its duration, and the median of all.
    idle : float
        Share of all groups' time for which they had nothing left to do.
    """

    simulation: int
    seconds: float
    others_s: float
    idle: float


@dataclass(frozen=True)
class Measured:
    """The measurements of a job.

    Attributes
    ----------
    run_s : float
        Seconds of the whole run.
    startup_s : float
        Seconds of it before the first samples arrived.
    trainers : tuple of TrainerMeasured
        In the middle of the time in which samples arrived, like the following attributes; one for each replica.
    groups, ranks_per_group, ranks_per_replica : int
        Numbers of groups, and of ranks.
    simulations : int
        Number of simulations that the groups have closed in the whole run.
    computing, room, simulation, starting : float
        Shares of the groups' time: computing, waiting for room in the buffers, for a simulation, and starting one.
    step_s : dict
        Seconds per step without waiting, by group.
    group_s : float or None
        Samples per second of a group that never waits, the mean of all groups; None if too little is known.
    capacity : int
        Of one buffer, in samples; 0 if it counts bytes.
    capacity_bytes : int
        Of one buffer, in bytes; 0 if it counts samples.
    batch : float
        Number of samples of a batch.
    slowed : float
        Share of time for which recording delayed the trainers, their mean.
    recorded_after_s : float
        Seconds after the last draw for which recording continued; 0 without a record.
    long : LongSimulation or None
        None: the groups ended at about the same time, or no simulation was longer than others.
    """

    run_s: float
    startup_s: float
    trainers: tuple[TrainerMeasured, ...]
    groups: int
    computing: float
    room: float
    simulation: float
    starting: float
    ranks_per_group: int = 1
    ranks_per_replica: int = 1
    simulations: int = 0
    step_s: dict[int, float] = field(default_factory=dict)
    group_s: float | None = None
    capacity: int = 0
    capacity_bytes: int = 0
    batch: float = 1.0
    slowed: float = 0.0
    recorded_after_s: float = 0.0
    long: LongSimulation | None = None

    @property
    def samples_s(self) -> float:
        """Samples per second that the trainers took."""
        return sum(trainer.samples_s for trainer in self.trainers)

    @property
    def waited(self) -> float:
        """Share of time for which the trainers waited, their mean."""
        return statistics.fmean(trainer.waited for trainer in self.trainers)

    @property
    def group_most_s(self) -> float:
        """Samples per second of a group that never waits."""
        if self.group_s is not None:
            return self.group_s
        return self.samples_s / max(self.computing + self.starting, 0.01) / self.groups

    @property
    def trainer_most_s(self) -> float:
        """Samples per second of a trainer that never waits: the slowest, because all get the same number of samples."""
        return min(trainer.most_s for trainer in self.trainers)


def measure(look: RunSnapshot) -> Measured | None:
    """Find out how the trainers and groups of a run spent their time; None if too little is known.

    Trainers are measured between 20 and 80 % of the time in which samples arrived, groups by the simulations that they
    closed, without the first ones if there are enough others.
    """
    lines = look.metrics
    inside = middle_of(lines)
    if inside is None:
        return None
    first, last = inside
    seconds = last["seconds"] - first["seconds"]
    solvers, buffer = _part(look.job, "solvers"), _part(look.job, "buffer")
    batch = _batch(lines[-1], buffer)
    trainers = tuple(
        TrainerMeasured((b - a) * batch / seconds, min(1.0, max(0.0, (late - early) / seconds)), number)
        for number, (a, b, early, late) in enumerate(
            zip(first["drawn"], last["drawn"], first["waited_s"], last["waited_s"], strict=True)
        )
        if b > a  # not a waiting spare
    )
    runs = [event for event in read_events(look.run.events) if _is_run(event)]
    shares = _shares_of(runs)
    if shares is None:
        return None
    record = _part(look.figures, "record")
    return Measured(
        run_s=lines[-1]["seconds"],
        startup_s=next(line["seconds"] for line in lines if sum(line["received"])),
        trainers=trainers,
        groups=int(look.story.start.get("groups") or solvers.get("groups") or 1),
        ranks_per_group=int(_part(solvers, "carried").get("ranks") or solvers.get("ranks_per_group") or 1),
        ranks_per_replica=int(_part(look.job, "trainers").get("ranks_per_replica") or 1),
        simulations=len(runs),
        **shares,
        step_s=_steps(runs),
        group_s=_group_samples_s(runs, sum(lines[-1]["received"])),
        capacity=_capacity(buffer) or 0,
        capacity_bytes=parse_size(str(buffer.get("capacity"))) or 0,
        batch=max(1.0, batch),
        long=_long(runs, lines[-1]["seconds"]),
        recorded_after_s=_after_last_draw(lines) if record else 0.0,
        slowed=float(record.get("slowed_s") or 0.0) / max(1, len(trainers)) / max(lines[-1]["seconds"], 1e-9),
    )


def _capacity(buffer: dict[str, Any]) -> int:
    """Return the samples that the buffer holds; 0 if it counts bytes."""
    capacity = buffer.get("capacity") or 0
    return capacity if isinstance(capacity, int) else 0


def _after_last_draw(lines: list[dict[str, Any]]) -> float:
    drew = [b["seconds"] for a, b in pairwise(lines) if sum(b["drawn"]) > sum(a["drawn"])]
    return float(lines[-1]["seconds"] - drew[-1]) if drew else 0.0


def _batch(line: dict[str, Any], buffer: dict[str, Any]) -> float:
    """Compute the number of new samples per batch; samples that wait in a fifo or firo are in no batch yet."""
    waiting = 0.0 if buffer.get("policy") == "reservoir" else sum(line["fill"]) * _capacity(buffer)
    return float(max(0.0, sum(line["received"]) - waiting) / max(sum(line["drawn"]), 1))


def _shares_of(runs: list[dict[str, Any]]) -> dict[str, float] | None:
    """Add up how groups spent their time, without the first simulation of each group that has run others."""
    seen: set[int] = set()
    later = [run for run in runs if run["group"] in seen or seen.add(run["group"])]  # type: ignore[func-returns-value]
    chosen = later if len(later) >= len(seen) else runs
    names = {"computing": "compute_s", "room": "room_s", "simulation": "next_s", "starting": "start_s"}
    sums = {share: sum(float(run.get(name, 0.0)) for run in chosen) for share, name in names.items()}
    total = sum(sums.values())
    return {share: seconds / total for share, seconds in sums.items()} if total > 0 else None


def _steps(runs: list[dict[str, Any]]) -> dict[int, float]:
    """Compute seconds per step by group, without waiting and starting."""
    steps: dict[int, float] = {}
    seconds: dict[int, float] = {}
    for run in runs:
        group = run["group"]
        steps[group] = steps.get(group, 0) + max(0, run.get("steps", 0) - 1)
        seconds[group] = seconds.get(group, 0.0) + run.get("compute_s", 0.0)
    return {group: seconds[group] / steps[group] for group in steps if steps[group]}


def _group_samples_s(runs: list[dict[str, Any]], received: int) -> float | None:
    """Compute the samples per second that a group would produce if it never waited, the mean over the groups.

    Not from the rate of arrivals: while the buffers fill, groups wait less than later. `received` is the number of
    samples of the whole run: steps for validation, or before a window is complete, are not samples for training.
    """
    of: dict[int, list[tuple[int, float]]] = {}
    for run in runs:
        seconds = float(run.get("compute_s", 0.0)) + float(run.get("start_s", 0.0))
        of.setdefault(run["group"], []).append((run["steps"], seconds))
    later = [runs[1:] or runs for runs in of.values()]  # the first simulation of a group includes its start
    if not received or any(sum(seconds for _, seconds in runs) <= 0 for runs in later):
        return None
    share = min(1.0, received / max(1, sum(run["steps"] for run in runs)))
    speeds = [sum(steps for steps, _ in runs) / sum(seconds for _, seconds in runs) for runs in later]
    return share * statistics.fmean(speeds) if any(speeds) else None


def _long(runs: list[dict[str, Any]], run_s: float) -> LongSimulation | None:
    """Find the simulation that the other groups had to wait for at the end."""
    ends = {run["group"]: float(run["time"]) for run in runs}  # the last one of each
    end = max(ends.values())
    last = next(run for run in reversed(runs) if run["time"] == end)
    idle = sum(end - of for of in ends.values()) / len(ends) / max(run_s, 1e-9)
    times = {run["simulation"]: sum(float(run.get(part, 0.0)) for part in _PARTS) for run in runs}
    found = LongSimulation(last["simulation"], times[last["simulation"]], statistics.median(times.values()), idle)
    return found if idle > 0.25 and found.seconds > 3 * found.others_s else None


def _is_run(event: dict[str, Any]) -> bool:
    numbers = event.get("group"), event.get("steps"), event.get("simulation")
    return event["event"] == "simulation_run" and all(isinstance(number, int) for number in numbers)


def _part(whole: dict[str, Any], name: str) -> dict[str, Any]:
    found = whole.get(name)
    return found if isinstance(found, dict) else {}
