"""The choices of a seed of the resume campaign: a job, and its starts, each with what ends it."""

import dataclasses
import math
import random

__all__ = ["PART_S", "Draw", "Start", "draw"]

MOST_BYTES = 200 << 20
RANKS = ("trainer", "mpidata-rank", "scheduler", "mpirun")
# System calls of `mpidata run` before mpirun's start that change something, and about how many there are.
CALLS = {"mkdir": 3, "rename": 4, "unlink": 3, "write": 8, "openat": 870, "vfork": 2, "clone": 1}
FULL_DISK = ("mkdir", "rename", "write")
PART_S = 2.0  # least time in which the trainers draw the part of the samples that one start may draw


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
    early: str  # killed before the ranks have joined, if any
    early_s: float
    victim: str  # killed later; `prepare` and `disk`: the preparation of this start is interrupted
    after_checkpoint: bool  # whether moment_s counts from the start's first checkpoint or from the joining of its ranks
    moment_s: float
    in_checkpoint: bool
    call: str
    nth: int
    which: int  # index among several of the same kind
    at_once: bool  # the next start does not wait until all processes have ended

    def __str__(self) -> str:
        """Return the choices in brackets."""
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
    """The choices of one seed."""

    seed: int
    elements: int  # float32 values per sample
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
        """Return the choices in one line."""
        keys = " ".join(f"{key}={value}" for key, value in vars(self).items() if key != "starts")
        return f"{keys} {' '.join(map(str, self.starts))}"

    @property
    def samples(self) -> set[str]:
        """Return all samples that are trained on."""
        return {f"{simulation}/{step}" for simulation in range(self.simulations) for step in range(self.steps)}


def draw(seed: int) -> Draw:
    """Generate the job of a seed."""
    chosen = random.Random(f"resume campaign {seed}")
    size = 10 ** chosen.uniform(2, math.log10(8 << 20))
    steps = chosen.randint(4, 8 if size > 1 << 20 else 40)
    ends = chosen.randint(2, 4)
    simulations = max(8, int(min(1200, max(60, MOST_BYTES / size))) // steps)
    policy = chosen.choice(["fifo", "firo", "reservoir"])
    batch, by_name = chosen.choice([0, 1, 3, 5]), chosen.random() < 0.4
    starts = [_start(chosen, policy, batch, simulations * steps, size) for _ in range(ends + 1)]
    # The last start has most of the simulations to run, and a group for each would take minutes.
    starts[-1] = dataclasses.replace(starts[-1], lifetime="pool", early="", victim="", at_once=False)
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
