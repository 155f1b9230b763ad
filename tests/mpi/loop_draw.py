"""The choices of a seed of the loop campaign: solvers, trainers, inference ranks, learners and deaths."""

import dataclasses
import random
import signal

KINDS = ("function", "program", "c", "carried", "carried python", "carried ranks", "files")
DEATHS = 5
_WAYS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    kind: str
    start: str
    lifetime: str
    groups: int
    ranks: int  # of a group; of the program if it is carried
    carriers: int
    spares: int
    trainers: int
    elastic: bool
    tail: str
    policy: str
    capacity: int
    batch: int
    window: int
    rows: bool  # whether a field is put by maps
    validation: int
    simulations: int
    steps: int
    step_s: float
    pause_s: float
    cancels: float
    most: int
    publishes: float
    refreshes: int
    deaths: tuple[tuple[str, int], ...]  # which role dies, and by which signal
    trainer_spares: int
    ragged: bool  # whether a field's rows differ between samples
    record: int  # every n-th step is recorded; 0: none
    journal: bool  # and whether the run is replayed
    learner: bool
    learner_spares: int
    stateful: bool  # whether the sampler has a state
    inference: int  # ranks
    inference_spares: int
    first: int  # 1: the weights are published before the first batch; 0: they come from a file
    asks: int  # percent of the steps
    asked_rows: int  # at most, per question
    asked_batch: int
    wait_ms: float
    call_s: float

    @property
    def carried(self) -> bool:
        """Whether the program is not a rank of the job."""
        return is_carried(self.kind)

    @property
    def width(self) -> int:
        """Ranks of the job in a group."""
        return self.carriers if self.carried else self.ranks

    @property
    def first_solver(self) -> int:
        """The rank of the first solver that starts with the others."""
        return 1 + self.trainers + self.trainer_spares

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def is_carried(kind: str) -> bool:
    """Return whether programs of this kind are not ranks of the job."""
    return kind.startswith("carried") or kind == "files"


def draw(seed: int) -> Draw:
    """Generate the job of a seed: first what solvers and trainers do, as always, then what was added later."""
    chosen, later = random.Random(f"loop campaign {seed}"), random.Random(f"loop campaign, later {seed}")
    kind = chosen.choice(KINDS)
    carried = is_carried(kind)
    several = kind in ("program", "c", "carried ranks", "function")
    ranks = chosen.randint(1, 3) if several else 1
    start = "split" if carried else chosen.choice(["split", "split", "spawn"])
    lifetime = "simulation" if kind == "files" else chosen.choice(["pool", "pool", "simulation"])
    lifetime = lifetime if carried or start == "spawn" else "pool"
    elastic = seed % 4 == 0
    trainers = chosen.randint(1, 2) + elastic
    deaths = chosen.randint(0, 5)
    roles = ["solver", "solver", "solver", *(["carrier"] if carried else [])]
    who = [chosen.choice(roles) for _ in range(deaths)]
    if elastic:
        who = who[:3] + ["trainer"] * chosen.randint(1, trainers - 1)
        chosen.shuffle(who)
    slow = lifetime == "simulation"
    batch = chosen.randint(1, 4)
    window = 1 if elastic else chosen.choice([1, 1, 1, 2, 3])
    old = {
        "lifetime": lifetime,
        "groups": chosen.randint(1, 3 if ranks == 1 else 2),
        "carriers": chosen.choice([1, 2]) if kind == "carried ranks" and ranks > 1 else 1,
        "spares": 0 if start == "spawn" else chosen.randint(0, 1),
        "tail": chosen.choice(["repeat", "drop"]) if elastic else "repeat",
        "policy": chosen.choice(["fifo", "firo", "reservoir"]),
        "capacity": window * (chosen.choice([4, 10, 100]) + 2 * batch),
        "rows": kind in ("program", "carried python") and not elastic and chosen.random() < 0.6,
        "validation": chosen.choice([0, 0, 2]),
        "simulations": 14 if slow else chosen.randint(20, 40),
        "steps": chosen.randint(8, 30),
        "step_s": chosen.choice([0.002, 0.01, 0.03]),
        "pause_s": chosen.choice([0.0, 0.005, 0.02]),
        "cancels": chosen.choice([0.02, 0.1, 0.5]),
        "most": chosen.randint(2, 10),
        "publishes": chosen.choice([0.05, 0.5, 1.0]),
        "refreshes": chosen.choice([5, 50, 100]),
    }
    if kind in ("c", "carried") and later.random() < 0.5:
        kind = {"c": "fortran", "carried": "carried fortran"}[kind]
    new = {
        "trainer_spares": later.randint(0, 1) if elastic else 0,
        "ragged": kind != "files" and later.random() < 0.5,
        "record": later.choice([0, 0, 1, 3]),
        "learner": later.random() < 0.6,
        "learner_spares": later.randint(0, 1),
        "stateful": later.random() < 0.7,
        **_answers(later, asked=kind != "files"),
    }
    new["journal"] = later.random() < 0.5 and not (new["inference"] or elastic or window > 1)
    # Trainers must come to be the last before all that they have is drawn.
    old["capacity"] = min(old["capacity"], max(window * 2 * batch, old["simulations"] * old["steps"] // (4 * trainers)))
    died = _deaths(later, who, roles, bool(new["inference"]), bool(new["learner"]), old["lifetime"])
    if elastic:  # only spares replace lost ranks
        spares = _spares(died, start, carried)
        old["spares"] = max(old["spares"], spares["spares"])
        new["inference_spares"] = max(new["inference_spares"], spares["inference_spares"])
        new["learner_spares"] = max(new["learner_spares"], spares["learner_spares"])
    signals = tuple((one, signal.SIGKILL if one in ("trainer", "learner") else chosen.choice(_WAYS)) for one in died)
    return Draw(
        seed=seed,
        kind=kind,
        start=start,
        ranks=ranks,
        trainers=trainers,
        elastic=elastic,
        batch=batch,
        window=window,
        deaths=signals,
        **old,
        **new,
    )


def _answers(later: random.Random, asked: bool) -> dict[str, float]:
    """Choose the inference ranks and the questions; `inference` is 0 if nobody asks."""
    return {
        "inference": later.randint(1, 2) * (later.random() < 0.9) * asked,
        "inference_spares": later.randint(0, 2),
        "first": later.randint(0, 1),
        "asks": later.choice([20, 60, 100]),
        "asked_rows": later.choice([5, 5, 40, 2999]),
        "asked_batch": later.choice([1, 16, 1000]),
        "wait_ms": later.choice([0, 0, 5]),
        "call_s": later.choice([0.0, 0.0, 0.01]),
    }


def _deaths(
    later: random.Random, who: list[str], roles: list[str], asked: bool, learns: bool, lifetime: str
) -> list[str]:
    """Choose the roles that die, in order: learners first, while simulations are left to be sampled."""
    trainers = who.count("trainer")
    left = DEATHS - trainers
    learners = later.randint(1, 2) if learns else 0
    answering = (
        later.randint(1, left - learners - (1 if left - learners > 1 else 0)) if asked and left > learners else 0
    )
    left -= learners + answering
    others = [one for one in who if one != "trainer"][:left]
    others += [later.choice(roles) for _ in range(left - len(others))]
    others += ["inference"] * answering + ["trainer"] * trainers
    later.shuffle(others)
    return ["learner"] * learners + others


def _spares(died: list[str], start: str, carried: bool) -> dict[str, int]:
    """Return how many spares are needed; another role dies in place of one that does not exist (loop_deaths.py)."""
    solvers = died.count("carrier") if carried else died.count("solver") + died.count("learner")
    answering, learners = len(died) - died.count("trainer"), died.count("learner")
    return {"spares": solvers * (start == "split"), "inference_spares": answering, "learner_spares": learners}
