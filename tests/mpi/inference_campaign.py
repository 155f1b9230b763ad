"""One random job of the inference campaign: solvers ask, solvers and inference ranks die, all from one seed.

Split and spawn, 1 to 3 inference ranks with or without spares, groups of 1 or 2 ranks, 1 or 2 trainers, one of which
may die. The weights come from a file or are published. Whoever dies, each answer matches its question bit for bit,
comes from one call of the function with the version that it names, and the job completes without a restart.
"""

import dataclasses
import random
import signal
from pathlib import Path

import psutil
import torch
from jobs import JobFolder, python, ranks_of, variables_of
from killing import Killer

NET = """
import time
import torch

def answer(inputs, weights):
    x, n = inputs["x"], inputs["n"]
    time.sleep({seconds})
    sums = torch.where(n, x.sum(1), torch.zeros(()))
    return dict(y=x * weights["factor"] + 1, s=sums.double(), n=torch.full((len(x),), len(x)), more=x)
"""
COUNT = 6


@dataclasses.dataclass(frozen=True)
class Draw:
    """The choices of one seed."""

    seed: int
    start: str
    groups: int
    ranks_per_group: int
    spares: int  # groups
    trainers: int
    inference: int
    inference_spares: int
    batch: int
    wait_ms: float
    seconds: float  # of a call
    rows: int  # at most, per question
    kills_of_solvers: int
    kills_of_inference: int
    published: bool  # whether the weights are published
    trainer_dies_at: int  # in which batch; 0: none dies

    def __str__(self) -> str:
        """Return the choices in one line."""
        return " ".join(f"{key}={value}" for key, value in dataclasses.asdict(self).items())


def draw(seed: int, kills: int = 5) -> Draw:
    """Generate the job of a seed."""
    chosen = random.Random(f"inference campaign {seed}")
    start = chosen.choice(["split", "split", "spawn"])
    of_inference = chosen.randint(1, kills)
    trainers = chosen.randint(1, 2)
    published = chosen.random() < 0.5
    one = Draw(
        seed=seed,
        start=start,
        groups=chosen.randint(1, 3),
        ranks_per_group=chosen.randint(1, 2),
        spares=chosen.randint(0, 1) if start == "split" else 0,
        trainers=trainers,
        inference=chosen.randint(1, 3),
        inference_spares=chosen.randint(0, 2),
        batch=chosen.choice([1, 4, 1000]),
        wait_ms=chosen.choice([0, 0, 5]),
        seconds=chosen.choice([0.0, 0.01]),
        rows=chosen.choice([5, 5, 20000]),
        kills_of_solvers=kills - of_inference,
        kills_of_inference=of_inference,
        published=published,
        trainer_dies_at=chosen.choice([0, 3, 20]) if published and trainers == 2 else 0,
    )
    if not one.trainer_dies_at:
        return one
    # An elastic job spawns only groups, and those only in the spawn start: something must be left.
    groups = one.groups + one.spares - 1 if start == "split" else kills
    return dataclasses.replace(
        one,
        kills_of_solvers=min(one.kills_of_solvers, groups),
        kills_of_inference=min(one.kills_of_inference, one.inference + one.inference_spares - 1),
    )


def build(folder: Path) -> None:
    """Do nothing: there is nothing to build."""


class _AskingKiller(Killer):
    """Kills processes whose command contains `word`."""

    word, option = "", ""
    ways = {signal.SIGKILL: "signal", signal.SIGSTOP: "silent"}

    def ranks(self, folder: Path, **layout: int | str) -> dict[int, list]:
        """Return the processes that run, by group or number."""
        found: dict[int, list] = {}
        for process in ranks_of(folder):
            try:
                shim = process.parent().cmdline()
                if self.word not in " ".join(process.cmdline()) or process.name() == "mpidata-rank":
                    continue
                rank = int(variables_of(process)["OMPI_COMM_WORLD_RANK"]) - int(layout["first"])
                number = int(shim[shim.index(self.option) + 1]) if self.option in shim else rank // int(layout["each"])
                found.setdefault(number, []).append(process)
            except (psutil.Error, AttributeError, KeyError):
                continue
        return found


class InferenceKiller(_AskingKiller):
    """Kills inference ranks, including spares."""

    what, works, lost = "inference", "inference_joined", "inference_lost"
    word, option = "mpidata.inference", "--inference"


class SolverKiller(_AskingKiller):
    """Kills ranks of groups that run a simulation."""

    word, option = "asks.py", "--group"


def run_draw(folder: JobFolder, built: Path, seed: int, kills: int = 5, timeout: float = 240) -> str:
    """Run the job of a seed in a folder, and check the result; returns a line that describes the run."""
    one = draw(seed, kills)
    torch.save({"factor": torch.tensor([1.0, 2.0, 3.0])}, folder.path / "net.pt")
    folder.write(net=NET.format(seconds=one.seconds))
    split = one.start == "split"
    program = python("trainers/publishes.py", one.trainer_dies_at) if one.published else python("trainers/drain.py")
    folder.job(
        trainers={"ranks": one.trainers, "program": program, **({"elastic": True} if one.trainer_dies_at else {})},
        solvers={
            "program": python(
                "solvers/python/asks.py",
                *(one.rows, folder.path / "kills", 2 * (one.kills_of_solvers + one.kills_of_inference)),
                *(["published"] if one.published else []),
            ),  # each kill is noted again at the end
            **{"groups": one.groups, "ranks_per_group": one.ranks_per_group, "start": one.start, "retries": 20},
            **({"spares": one.spares} if split else {}),
            "timeout_s": 4,
            "start_timeout_s": 4,
        },
        parameters={"count": COUNT, "space": {"alpha": [0.0, 1.0]}},
        inference={
            **({} if one.published else {"weights": "net.pt"}),
            **{"function": "net:answer", "ranks": one.inference, "spares": one.inference_spares},
            **{"batch": one.batch, "wait_ms": one.wait_ms, "timeout_s": 4},
        },
        fields={"u": {"dtype": "float32", "shape": [3]}},
    )
    first = 1 + one.trainers
    behind = first + ((one.groups + one.spares) * one.ranks_per_group if split else 0)
    killers = [
        SolverKiller(folder.path, one.kills_of_solvers, seed, first=first, each=one.ranks_per_group),
        InferenceKiller(folder.path, one.kills_of_inference, seed, first=behind, each=1),
    ]
    for killer in killers:
        killer.start()
    try:
        result = folder.run(timeout=timeout)
    finally:
        for killer in killers:
            killer.stop()
    summary = result.summary
    assert result.status == 0 and summary["status"] == "complete", result.logs()
    assert summary["simulations"]["complete"] == COUNT and not summary["set_aside"], result.logs()
    killed = [len(killer.killed) for killer in killers]
    assert killed == [one.kills_of_solvers, one.kills_of_inference], f"the job ended after {killed}\n{result.logs()}"
    assert summary["inference"]["lost"] <= one.kills_of_inference and summary["lost_groups"] <= one.kills_of_solvers
    assert summary.get("lost_trainers", []) == ([0] if one.trainer_dies_at else []), result.logs()
    return f"{result.seconds:.0f} s, {killed[0]} solvers, {killed[1]} inference ranks"
