"""One random job of the kill campaign: all its choices and its solvers' deaths follow from one seed.

Sizes from 100 B to 32 MB, 1 to 4 ranks a group, 1 to 3 trainers, all policies, record on and off, split, spawn and
spares, with 3 to 8 deaths each. Whatever dies, each sample is received once, drawn once (fifo, firo; `tail: drop` may
leave some) and recorded once, no process is left, and a job with ULFM continues without a restart.
"""

import dataclasses
import json
import math
import random
import subprocess
from collections import Counter
from pathlib import Path

from jobs import PROGRAMS, JobFolder, Result, config, environment, mpicc
from killing import WAYS, Killer, events_of

MOST_BYTES = 800 << 20
RESTARTS = 12


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    elements: int  # float32 values per sample
    trainers: int
    groups: int
    ranks: int  # of a group
    start: str
    lifetime: str
    spares: int
    policy: str
    capacity: int
    watermark: int
    tail: str
    batch: int  # 0: single samples
    record: bool
    ulfm: bool
    simulations: int
    steps: int
    put: str
    together: str
    work_us: int
    kills: int
    at_once: float
    window: int = 1
    stride: int = 1
    run: int = 1

    @property
    def windows(self) -> int:
        """Samples of a simulation."""
        return self.steps - (self.window - 1) * self.stride

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())

    def share(self, trainer: int) -> set[str]:
        """Samples of a trainer."""
        return {
            f"{simulation}/{step}"
            for simulation in range(self.simulations)
            for step in range(self.windows)
            if (simulation + step // self.run) % self.trainers == trainer
        }

    @property
    def shares(self) -> list[set[str]]:
        """Samples of each trainer."""
        return [self.share(trainer) for trainer in range(self.trainers)]


def draw(seed: int) -> Draw:
    """Generate the job of a seed."""
    chosen = random.Random(f"kill campaign {seed}")
    size = 10 ** chosen.uniform(2, math.log10(32 << 20))
    ranks = chosen.randint(1, 4)
    trainers = chosen.randint(1, 3)
    groups = chosen.randint(1, max(1, 6 // ranks))
    start = chosen.choice(["split", "split", "spawn"])
    spares = chosen.randint(0, 2 if ranks < 3 else 1) if start == "split" else 0
    policy = chosen.choice(["fifo", "firo", "reservoir"])
    batch = chosen.choice([0, 1, 3, 5])
    kills = chosen.randint(3, 8)
    steps = chosen.randint(4, 8 if size > 1 << 20 else 50)
    simulations = max(groups + 2 * kills, int(min(3000, max(60, MOST_BYTES / size))) // steps)
    lifetime = "simulation" if start == "spawn" and chosen.random() < 0.2 else "pool"
    if lifetime == "simulation":  # a group is started for each, which takes a second or more
        simulations = min(simulations, groups + 3 * kills)
    # Much less than is drawn between two deaths; otherwise the solvers would be done before the last death.
    part = simulations * steps // trainers // (kills + 1)
    capacity = max(10, int(min(400, part / 2, (256 << 20) / trainers / size) * chosen.uniform(0.5, 1))) + batch
    return Draw(
        seed=seed,
        elements=int(size / 4),
        trainers=trainers,
        groups=groups,
        ranks=ranks,
        start=start,
        lifetime=lifetime,
        spares=spares,
        policy=policy,
        capacity=capacity,
        watermark=0 if policy == "fifo" else chosen.randint(0, capacity // 4),
        tail=chosen.choice(["drop", "repeat"]),
        batch=batch,
        record=chosen.random() < 0.5,
        ulfm=chosen.random() > 0.07,
        simulations=simulations,
        steps=steps,
        put=chosen.choice(["put", "iput"]),
        together=chosen.choice(["together", "apart"]),
        work_us=chosen.choice([0, 100, 2000]),
        kills=kills,
        at_once=chosen.choice([0.0, 0.3]),
    )


def draw_windows(seed: int) -> Draw:
    """Generate a job whose samples are windows of several steps: five deaths, each window once."""
    chosen = random.Random(f"kill campaign with windows {seed}")
    one = draw(seed)
    stride = chosen.randint(1, 2)
    window = chosen.randint(2, max(2, min(5, (one.steps - stride - 1) // stride)))
    span = (window - 1) * stride
    return dataclasses.replace(
        one,
        window=window,
        stride=stride,
        run=chosen.choice([span, span + 1, 10 * span]),
        policy=chosen.choice(["fifo", "firo"]),
        watermark=one.watermark // window,
        capacity=max(one.capacity, (one.watermark // window + max(1, one.batch)) * window),
        kills=5,
        ulfm=True,
        simulations=max(one.simulations, one.groups + 15),
    )


def build(folder: Path) -> None:
    """Build the solver, and the library that is preloaded into it, as a user does."""
    warnings = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"]
    for command in (
        [mpicc(), *warnings, PROGRAMS / "solvers/sized.c", "-o", folder / "sized", *config("--cflags", "--libs")],
        [
            mpicc(),
            *warnings,
            "-shared",
            "-fPIC",
            PROGRAMS / "preloads/kill_switch.c",
            "-o",
            folder / "kill_switch.so",
            "-ldl",
        ],
    ):
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file."""
    solver = [str(built / "sized"), str(one.elements), str(one.steps), one.put, one.together, str(one.work_us)]
    solvers = {
        "groups": one.groups,
        "ranks_per_group": one.ranks,
        "program": ["sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{built}/kill_switch.so" exec "$@"', "sh", *solver],
        "start": one.start,
        "lifetime": one.lifetime,
        "retries": 20,
        "timeout_s": 3,
        "start_timeout_s": 3,
    }
    census = [
        "python",
        str(PROGRAMS / "trainers/census/census_sized.py"),
        str(one.kills),
        str(min(map(len, one.shares))),
        str(one.batch),
    ]
    buffer = {"policy": one.policy, "capacity": one.capacity, "tail": one.tail}
    job = {
        "name": "job",
        "seed": one.seed,
        "trainers": {"ranks": one.trainers, "program": census},
        "solvers": solvers | ({"spares": one.spares} if one.start == "split" else {}),
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [one.elements]}, "mark": {"dtype": "int64", "shape": []}},
        "buffer": buffer | ({} if one.policy == "fifo" else {"watermark": one.watermark}),
    }
    if one.window > 1:
        job["samples"] = {"window": one.window, "stride": one.stride, "run": one.run}
    if one.record:
        job["record"] = {"path": "samples"}
    if not one.ulfm:
        job["launch"] = {"fault_tolerance": False}
        job["checkpoint"] = {"every_s": 1}
    folder.write_job(job)


def run_draw(folder: JobFolder, built: Path, seed: int, timeout: float = 170, windows: bool = False) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    one = draw_windows(seed) if windows else draw(seed)
    write_job(folder, built, one)
    layout = {"ranks_per_group": one.ranks, "trainers": one.trainers, "program": "sized"}
    killer = Killer(folder.path, one.kills, seed, one.at_once, **layout)
    killer.start()
    try:
        result = folder.run("--restarts", str(RESTARTS), timeout=timeout)
    finally:
        killer.stop()
    assert result.status == 0, result.logs()
    restarts = sum(event["event"] == "start" for event in events_of(folder.path)) - 1
    check_summary(one, result, killer, restarts)
    check_drawn(one, folder.path)
    if one.record:
        check_record(one, folder.path / "samples")
    ways = ", ".join(f"{way}x{n}" for way, n in sorted(Counter(int(way) for _, way in killer.killed).items()))
    return f"{result.seconds:.0f} s, signals {ways or 'none'}, {restarts} restarts"


def check_summary(one: Draw, result: Result, killer: Killer, restarts: int) -> None:
    """All was received, only killed groups were lost, each death has its cause, and ULFM needs no restart."""
    summary = result.summary
    assert summary["status"] == "complete" and not summary["set_aside"], result.logs()
    assert summary["simulations"]["complete"] == one.simulations
    assert summary["samples"]["received"] == one.simulations * one.windows
    assert summary["samples"]["per_trainer"] == [len(share) for share in one.shares]
    if not one.ulfm:
        return
    assert restarts == 0, f"restarted {restarts} times with ULFM\n{result.logs()}"
    lost = [event for event in events_of(result.run.parents[2]) if event["event"] == "group_lost"]
    killed = dict(killer.killed)
    for event in lost:
        assert event["group"] in killed, f"group {event['group']} was lost, but not killed: {event}\n{result.logs()}"
        expected = WAYS[killed[event["group"]]]
        assert event["cause"] == expected, f"signal {killed[event['group']]} was told as {event}"
    assert summary["lost_groups"] == len(lost)


def check_drawn(one: Draw, folder: Path) -> None:
    """Each trainer has drawn its own samples, once each; `tail: drop` may leave the rest."""
    counted = [json.loads((folder / f"census-{trainer}.json").read_text()) for trainer in range(one.trainers)]
    size = max(1, one.batch)
    batches = [len(share) // size for share in one.shares]
    for found, share in zip(counted, one.shares, strict=True):
        assert found.keys() <= share, sorted(found.keys() - share)[:10]
        again = sum(found.values()) - len(found)
        if one.policy == "reservoir":
            assert (
                len(share) - len(found) < max(1, one.capacity + size) if one.tail == "drop" else found.keys() == share
            )
        elif one.tail == "drop":
            assert again == 0 and len(found) == min(batches) * size, (again, len(found), min(batches) * size)
        else:
            most = max(-(-len(other) // size) for other in one.shares) * size
            assert found.keys() == share and sum(found.values()) == most, (len(found), len(share), again, most)


def check_record(one: Draw, folder: Path) -> None:
    """The record holds every sample once, with the values that were sent."""
    import torch

    from mpidata import RecordedDataset

    dataset = RecordedDataset(folder)
    pattern = (torch.arange(one.elements) % 61).float()
    rows = 0
    for path in folder.iterdir():
        import h5py

        with h5py.File(path, "r", swmr=True) as file:
            rows += int((file["simulation"][:] >= 0).sum())
    assert rows == len(dataset) == one.simulations * one.steps, (rows, len(dataset))
    for sample in (dataset[i] for i in range(len(dataset))):
        simulation, step = int(sample["simulation"]), int(sample["step"])
        assert torch.equal(sample["u"], pattern + (4096 * simulation + 64 * step)), (simulation, step)
        assert int(sample["mark"]) == 64 * simulation + step
