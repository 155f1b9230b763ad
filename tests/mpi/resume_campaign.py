"""One draw of the resume campaign: a run that is interrupted some times and resumed as another one, all from one seed.

Trainer, scheduler, mpirun, `mpidata run` itself and all of them at once are killed: before the ranks have joined, while
they work, while a checkpoint is written, and at a system call of the preparation of the next start, which may find the
disk full there, too. Each start has other numbers of trainers, groups and ranks, another tail and another capacity.
Whatever happens, the run completes, each sample is received once, drawn once (fifo, firo; `tail: drop` may leave some)
and recorded once, and nothing is left.
"""

import contextlib
import dataclasses
import json
import math
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from subprocess import Popen

import psutil
import yaml
from jobs import BIN, PROGRAMS, JobFolder, Result, ranks_of
from kill_campaign import build
from killing import events_of, job_processes
from programs.drawn import Part, used

__all__ = ["build", "draw", "run_draw"]

MOST_BYTES = 200 << 20
RANKS = ("trainer", "mpidata-rank", "scheduler", "mpirun")
# The system calls of `mpidata run` up to mpirun's start that change something, and about how many there are.
CALLS = {"mkdir": 3, "rename": 4, "unlink": 3, "write": 8, "openat": 870, "vfork": 2, "clone": 1}
FULL_DISK = ("mkdir", "rename", "write")
PART_S = 2.0
END_S = 20.0  # for all ranks to end, once one has been killed


@dataclasses.dataclass(frozen=True)
class Start:
    """One start of the run, and what ends it."""

    trainers: int
    groups: int
    ranks: int
    start: str
    lifetime: str
    spares: int
    capacity: int
    watermark: int
    tail: str
    put: str
    together: str
    early: str  # who is killed before the ranks have joined, if anybody
    early_s: float
    victim: str  # who is killed later; `prepare` and `disk`: the preparation of this start is interrupted
    after_checkpoint: bool  # and how long after the first one of this start, or after its ranks have joined
    moment_s: float
    in_checkpoint: bool
    call: str
    nth: int
    which: int  # of several that are alike
    at_once: bool  # the next start does not wait until all processes have gone

    def __str__(self) -> str:
        """In brackets."""
        groups = f"{self.trainers}x{self.groups}x{self.ranks} {self.start}/{self.lifetime}+{self.spares}"
        buffer = f"{self.capacity}/{self.watermark} {self.tail} {self.put} {self.together}"
        early = f"; {self.early} at {self.early_s:.2f}" * bool(self.early)
        call = f" at {self.call} {self.nth}" * (self.victim in ("prepare", "disk"))
        when = f" {'checkpoint + ' * self.after_checkpoint}{self.moment_s:.2f}"
        when += " in a checkpoint" * self.in_checkpoint + ", at once" * self.at_once
        late = f"; {self.victim}{call}{when}" * bool(self.victim)
        return f"[{groups} {buffer}{early}{late}]"


@dataclasses.dataclass(frozen=True)
class Draw:
    """What one seed has chosen."""

    seed: int
    elements: int  # of float32, in each sample
    policy: str
    batch: int  # 0: single samples
    record: bool
    ulfm: bool
    simulations: int
    validation: int
    steps: int
    every_s: float
    by_name: bool
    starts: tuple[Start, ...]

    def __str__(self) -> str:
        """In one line."""
        keys = " ".join(f"{key}={value}" for key, value in vars(self).items() if key != "starts")
        return f"{keys} {' '.join(map(str, self.starts))}"

    @property
    def samples(self) -> set[str]:
        """All samples that are trained on."""
        return {f"{simulation}/{step}" for simulation in range(self.simulations) for step in range(self.steps)}


def draw(seed: int) -> Draw:
    """Choose."""
    chosen = random.Random(f"resume campaign {seed}")
    size = 10 ** chosen.uniform(2, math.log10(8 << 20))
    steps = chosen.randint(4, 8 if size > 1 << 20 else 40)
    ends = chosen.randint(2, 4)
    simulations = max(8, int(min(1200, max(60, MOST_BYTES / size))) // steps)
    policy = chosen.choice(["fifo", "firo", "reservoir"])
    batch, by_name = chosen.choice([0, 1, 3, 5]), chosen.random() < 0.4
    starts = [_start(chosen, policy, batch, simulations * steps, size) for _ in range(ends + 1)]
    starts[-1] = dataclasses.replace(starts[-1], early="", victim="", at_once=False)
    if not by_name and starts[0].victim in ("prepare", "disk"):  # there would be nothing to resume
        starts[0] = dataclasses.replace(starts[0], victim="mpidata")
    return Draw(
        seed=seed,
        elements=int(size / 4),
        policy=policy,
        batch=batch,
        record=chosen.random() < 0.5,
        ulfm=chosen.random() > 0.1,
        simulations=simulations,
        validation=chosen.choice([0, 0, 1, 2]),
        steps=steps,
        every_s=chosen.choice([0.2, 0.5, 1.0]),
        by_name=by_name,
        starts=tuple(starts),
    )


def _start(chosen: random.Random, policy: str, batch: int, samples: int, size: float) -> Start:
    start, ranks, trainers = chosen.choice(["split", "split", "spawn"]), chosen.randint(1, 3), chosen.randint(1, 3)
    capacity = int(chosen.uniform(10, max(11, min(300, samples / 4, (64 << 20) / size)))) + batch
    victim = chosen.choice((*RANKS, "mpidata", "all", "prepare", "prepare", "disk", "term"))
    call = chosen.choice(FULL_DISK if victim == "disk" else list(CALLS))
    return Start(
        trainers=trainers,
        groups=chosen.randint(1, max(1, 4 // ranks)),
        ranks=ranks,
        start=start,
        lifetime="simulation" if start == "spawn" and chosen.random() < 0.2 else "pool",
        spares=chosen.randint(0, 1) if start == "split" else 0,
        capacity=capacity,
        watermark=0 if policy == "fifo" else chosen.randint(0, capacity // 4),
        tail=chosen.choice(["drop", "repeat"]),
        put=chosen.choice(["put", "iput"]),
        together=chosen.choice(["together", "apart"]),
        early=chosen.choice([*RANKS, "mpidata", "all"]) if chosen.random() < 0.25 else "",
        early_s=chosen.uniform(0.0, 1.5),
        victim=victim,
        after_checkpoint=chosen.random() < 0.7,
        moment_s=chosen.uniform(0.0, PART_S),
        in_checkpoint=chosen.random() < 0.3,
        call=call,
        nth=chosen.randint(600 if call == "openat" else 1, CALLS[call]),
        which=chosen.randint(0, 5),
        at_once=chosen.random() < 0.3,
    )


def sections(built: Path, one: Draw, start: Start) -> dict[str, dict]:
    """The sections of the job file that change from start to start."""
    ends = len(one.starts) - 1
    census = [str(PROGRAMS / "census_logged.py"), *map(str, (one.batch, ends, len(one.samples), PART_S))]
    solvers = {
        "groups": start.groups,
        "ranks_per_group": start.ranks,
        "program": [str(built / "sized"), str(one.elements), str(one.steps), start.put, start.together, "100"],
        "start": start.start,
        "lifetime": start.lifetime,
        "retries": 20,
    }
    buffer = {"policy": one.policy, "capacity": start.capacity, "tail": start.tail}
    return {
        "trainers": {"ranks": start.trainers, "program": ["python", *census]},
        "solvers": solvers | ({"spares": start.spares} if start.start == "split" else {}),
        "buffer": buffer | ({} if one.policy == "fifo" else {"watermark": start.watermark}),
    }


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file of the first start."""
    job = {
        "name": "job",
        "seed": one.seed,
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}},
        "validation": {"count": one.validation},
        "fields": {"u": {"dtype": "float32", "shape": [one.elements]}, "mark": {"dtype": "int64", "shape": []}},
        "checkpoint": {"every_s": one.every_s, "keep": 2, "within_s": 5},
        "launch": {"fault_tolerance": one.ulfm},
        **sections(built, one, one.starts[0]),
    }
    if one.record:
        job["record"] = {"path": "samples"}
    (folder.path / "job.yaml").write_text(yaml.safe_dump(job))


class Run:
    """A run of a draw, from its first start to its end."""

    def __init__(self, folder: JobFolder, built: Path, one: Draw) -> None:
        self.folder, self.built, self.one = folder, built, one
        self.said: list[str] = []
        write_job(folder, built, one)
        (folder.path / "ends").touch()  # programs/census_logged.py waits for them

    def command(self, number: int) -> list[str]:
        start, runs = self.one.starts[number], self.folder.path / "runs" / "job"
        changed = sections(self.built, self.one, start) if number else {}
        sets = [word for key, value in changed.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        again = ["--resume", str(runs / "1")] if number and not self.one.by_name else ["job.yaml"]
        command = [str(BIN / "mpidata"), "run", *again, *sets, *["--as", "night"] * self.one.by_name]
        if start.victim not in ("prepare", "disk"):
            return command
        fault = "signal=KILL" if start.victim == "prepare" else "error=ENOSPC"
        inject = f"inject={start.call}:{fault}:when={start.nth}"
        log = self.folder.path / f"strace-{number}.log"
        return ["strace", "-qq", "-o", str(log), "-e", f"trace={start.call}", "-e", inject, *command]

    def run(self) -> Result:
        """Start, interrupt and resume until the run is complete."""
        for number in range(len(self.one.starts)):
            result = self.begin(number)
            assert "Traceback" not in result.output, result.output
            with (self.folder.path / "ends").open("a") as ends:
                ends.write("x")
            if result.status == 0:
                return result
            assert number < len(self.one.starts) - 1, result.logs()
        raise AssertionError("not reached")

    def begin(self, number: int) -> Result:
        """One start and its end; again while the one before has not ended."""
        start = self.one.starts[number]
        began = time.monotonic()
        while True:
            done = len(self.said)
            process = self.folder.start(command=self.command(number))
            self.interrupt(process, start)
            result = self.folder.finish(process, timeout=150, started=began)
            if "still running" not in result.output or time.monotonic() > began + END_S:
                break
        interrupted = len(self.said) > done or start.victim in ("prepare", "disk")
        assert result.status == 0 or interrupted, f"start {number} has ended by itself\n{result.logs()}"
        if not start.at_once:
            self.wait_for_end()
        if start.victim and result.run is not None and result.status != 0:
            expected = {"term": (75,), "disk": (1, 2, -9), "prepare": (-9,), "mpidata": (-9,), "all": (-9,)}
            statuses = (*expected.get(start.victim, (1,)), *((1, -9) if start.early else ()))
            assert result.status in statuses, (result.status, result.output)
        return result

    def interrupt(self, process: "Popen[str]", start: Start) -> None:
        """Kill what is to be killed; returns when it is, or when the start has ended before."""
        before = self.count("start")
        if start.early:
            here = RANKS[0] if start.early in ("mpidata", "all") else start.early
            self.wait_until(process, lambda: job_processes(self.folder.path, here, start.trainers), 60)
            time.sleep(start.early_s)
            before = self.count("start")
            self.kill(process, start, start.early)
        if not start.victim or not self.wait_until(process, lambda: self.count("start") > before, 90):
            return
        if start.after_checkpoint:
            written = self.count("checkpoint")
            self.wait_until(process, lambda: self.count("checkpoint") > written, 8, must=False)
        time.sleep(start.moment_s)
        if start.in_checkpoint:
            runs = self.folder.path / "runs" / "job"
            self.wait_until(process, lambda: any(runs.glob("*/checkpoints/*.new/*")), 2, must=False)
        # A preparation that was done before its call came is an end as others.
        self.kill(process, start, "mpidata" if start.victim in ("prepare", "disk") else start.victim)

    def count(self, name: str) -> int:
        """How often something has happened in this run."""
        return sum(event["event"] == name for event in events_of(self.folder.path))

    def wait_until(self, process: "Popen[str]", condition, timeout_s: float, must: bool = True) -> bool:
        """Wait for something; False where the start has ended before."""
        deadline = time.monotonic() + timeout_s
        while process.poll() is None and not condition():
            if time.monotonic() > deadline:
                assert not must, self.folder.finish(process, 0, deadline)
                return False
            time.sleep(0.005)
        return process.poll() is None

    def kill(self, process: "Popen[str]", start: Start, victim: str) -> None:
        if process.poll() is not None:  # in its preparation, or by itself, which is then found out
            return
        launcher = psutil.Process(process.pid)
        if launcher.name() == "strace":
            launcher = next(iter(launcher.children()), launcher)
        number = signal.SIGTERM if victim == "term" else signal.SIGKILL
        if victim in ("mpidata", "term"):
            victims = [launcher]
        elif victim == "all":
            victims = [launcher, *ranks_of(self.folder.path)]
        else:
            found = job_processes(self.folder.path, victim, start.trainers)
            victims = [found[start.which % len(found)]] if found else []
        for one in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)
        self.said.append(victim if victims else f"no {victim}")

    def wait_for_end(self) -> None:
        deadline = time.monotonic() + END_S
        while left := ranks_of(self.folder.path):
            assert time.monotonic() < deadline, [process.cmdline() for process in left]
            time.sleep(0.05)


def run_draw(folder: JobFolder, built: Path, seed: int) -> str:
    """Run the draw of a seed in a folder, and check what came; returns a line that says what happened."""
    assert shutil.which("strace"), "strace is not installed"
    one = draw(seed)
    began = time.monotonic()
    run = Run(folder, built, one)
    result = run.run()
    folder.assert_nothing_left()
    parts = used(folder.path / "drawn")
    check_summary(one, result)
    check_drawn(one, parts, one.starts[run_of(folder)])
    if one.record:
        check_record(one, folder.path / "samples")
    resumed = ", ".join(str(part.resumed) for part in parts)
    return f"{time.monotonic() - began:.0f} s, {', '.join(run.said)}; went on at batches {resumed}"


def run_of(folder: JobFolder) -> int:
    """Number of the start that has completed."""
    return (folder.path / "ends").stat().st_size - 1


def check_summary(one: Draw, result: Result) -> None:
    """All was received."""
    summary = result.summary
    assert summary["status"] == "complete" and not summary["set_aside"], result.logs()
    assert summary["simulations"]["complete"] == one.simulations + one.validation
    assert summary["samples"]["received"] == len(one.samples), summary["samples"]
    assert summary["samples"]["validation"] == one.validation * one.steps, summary["samples"]


def check_drawn(one: Draw, parts: list[Part], last: Start) -> None:
    """What counts of all starts has every sample, once; what the last start could not draw evenly is as promised."""
    size = max(1, one.batch)
    for part, after in zip(parts, parts[1:], strict=False):
        for trainer, batches in part.batches.items():
            assert len(batches) == after.resumed - part.resumed, (part.attempt, trainer, len(batches), after.resumed)
    before = Counter(key for part in parts[:-1] for key in part.keys())
    final = {
        trainer: Counter(key for batch in batches for key in batch) for trainer, batches in parts[-1].batches.items()
    }
    drawn = before.keys() | {key for counted in final.values() for key in counted}
    assert drawn <= one.samples, sorted(drawn - one.samples)[:10]
    missing = one.samples - drawn
    if one.policy == "reservoir":
        most = 0 if last.tail == "repeat" else last.trainers * (last.capacity + size)
        assert len(missing) <= most, f"{len(missing)} samples were never drawn"
        return
    assert max(before.values(), default=1) == 1, f"drawn twice: {[key for key, n in before.items() if n > 1][:10]}"
    left = {trainer: {key for key in one.samples - before.keys() if share(key, last) == trainer} for trainer in final}
    assert not (again := before.keys() & set().union(*final.values())) or last.tail == "repeat", sorted(again)[:10]
    if last.tail == "drop":
        batches = min(len(keys) // size for keys in left.values())
        for trainer, counted in final.items():
            assert counted.total() == len(counted) == batches * size, (trainer, counted.total(), len(counted), batches)
    else:
        batches = max(-(-len(keys) // size) for keys in left.values())
        assert not missing, sorted(missing)[:10]
        assert {counted.total() for counted in final.values()} == {batches * size}, (batches * size, final)


def share(key: str, start: Start) -> int:
    """The trainer that gets a sample."""
    return sum(map(int, key.split("/"))) % start.trainers


def check_record(one: Draw, folder: Path) -> None:
    """Every sample is there once, with the values that were sent."""
    import h5py
    import torch

    from mpidata import RecordedDataset

    pattern = (torch.arange(one.elements) % 61).float()
    rows = 0
    for path in folder.iterdir():
        with h5py.File(path, "r", swmr=True) as file:
            rows += int((file["simulation"][:] >= 0).sum())
    found = []
    for validation in (False, True):
        dataset = RecordedDataset(folder, validation=validation) if one.validation or not validation else []
        for sample in (dataset[i] for i in range(len(dataset))):
            simulation, step = int(sample["simulation"]), int(sample["step"])
            assert torch.equal(sample["u"], pattern + (4096 * simulation + 64 * step)), (simulation, step)
            found.append((simulation, step))
            assert (simulation >= one.simulations) == validation
    total = (one.simulations + one.validation) * one.steps
    assert rows == len(found) == len(set(found)) == total, (rows, len(found), len(set(found)), total)
