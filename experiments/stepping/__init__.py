"""Ways to choose simulations for training a surrogate that steps forward in time."""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import ROOT, Part, Results, Run, digits, mpidata
from experiments.stepping import page, why_page
from experiments.stepping.arms import PUBLISHED
from experiments.stepping.compared import Compared
from experiments.stepping.correlations import correlations
from experiments.stepping.problem import EQUATIONS

__all__ = ["EQUATIONS", "confirmation", "tuning", "why"]

_HERE = Path(__file__).resolve().parent
_REPEATS, _BATCH, _WINDOWS = 4, 32, 39  # windows per simulation
_QUARTERS, _BINS = 4, 10


@dataclass(frozen=True)
class Arm:
    """A sampler, its settings, whether losses have the weight 1 / density, and the relative length of its runs."""

    sampler: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    weighted: bool = False
    length: int = 1


@dataclass(frozen=True)
class _Size:
    simulations: int
    held_out: int

    @property
    def batches(self) -> int:
        """Number of batches in a run."""
        return self.simulations * _WINDOWS * _REPEATS // _BATCH


_WHOLE, _QUICK = _Size(400, 1000), _Size(100, 200)
_TUNED = ("burgers", "kuramoto-sivashinsky")
_COMPARED = (*_TUNED, "gray-scott")
_WITH_TORCH = ("diffusion", "committee")  # need their own rank
_EVEN = {"uniform": Arm("uniform"), "sobol": Arm("sobol")}
_TRIED = _EVEN | {
    "breed": Arm("breed"),
    "breed, end 0.7": Arm("breed", {"end": 0.7}),
    "power": Arm("power"),
    "adaptive, sharpness 1": Arm("adaptive", {"start": 0, "sharpness": 1.0}),
    "adaptive, sharpness 1.5": Arm("adaptive", {"start": 0, "sharpness": 1.5}),
    "adaptive, sharpness 2": Arm("adaptive", {"start": 0, "sharpness": 2.0}),
    "adaptive, bound 10": Arm("adaptive", {"start": 0, "sharpness": 2.0, "bound": 10.0}),
    "diffusion": Arm("diffusion"),
    "committee": Arm("committee"),
    "uniform, twice as long": Arm("uniform", length=2),
}
# The first `breed` arm has the former defaults: the breakpoint was 10 generations of 2 simulations each.
_WATCHED = {
    "uniform": Arm("uniform"),
    "breed, breakpoint 20": Arm("breed", {"breakpoint": 20}),
    "breed": Arm("breed"),
    "power": Arm("power"),
    "adaptive": Arm("adaptive", {"start": 0}),
    "adaptive, weighted": Arm("adaptive", {"start": 0}, weighted=True),
}
_CHOSEN = _EVEN | {
    "adaptive": Arm("adaptive", {"start": 0}),
    "adaptive, weighted": Arm("adaptive", {"start": 0}, weighted=True),
}
_OTHERS_ON = ("kuramoto-sivashinsky", "gray-scott", "burgers")
_CONFIRMED = _CHOSEN | {"power": Arm("power"), "breed": Arm("breed")}


def tuning(quick: bool) -> Part:
    """Return the runs that choose a sampler and its settings."""
    return _part("tuning", _TUNED, _TRIED, range(2 if quick else 5), quick)


def confirmation(quick: bool) -> Part:
    """Return the runs that compare samplers on separate seeds: the chosen sampler first, then the others.

    The others start with the equation on which they were best when settings were chosen.
    """
    part = _part("samplers", _COMPARED, _CONFIRMED, range(100, 102 if quick else 120), quick)
    chosen = [run for run in part.runs if any(f" {arm} " in run.name for arm in _CHOSEN)]
    others = [run for run in part.runs if run not in chosen]
    others.sort(key=lambda run: _OTHERS_ON.index(run.name.split()[0]))
    return dataclasses.replace(part, runs=[*chosen, *others])


def why(quick: bool) -> Part:
    """Return the runs that are watched more closely."""
    return _part("why", _TUNED[:1], _WATCHED, range(50, 52 if quick else 55), quick)


def _part(name: str, equations: Sequence[str], arms: Mapping[str, Arm], seeds: Sequence[int], quick: bool) -> Part:
    size = _QUICK if quick else _WHOLE
    runs = [
        Run(f"{equation} {arm} {seed}", partial(_run, equation, size, arms[arm], seed, name == "why"))
        for seed in seeds
        for equation in equations
        for arm in arms
    ]
    render = why_page.render if name == "why" else page.render
    return Part(name, runs, partial(render, Compared(name, equations, list(arms), seeds, size.simulations)))


def _run(
    equation: str, size: _Size, arm: Arm, seed: int, watched: bool, folder: Path, results: Results
) -> dict[str, Any]:
    result, times, space = folder / "result.json", folder / "times", EQUATIONS[equation].space
    size = dataclasses.replace(size, simulations=arm.length * size.simulations)
    numbers, more = [str(seed), str(size.batches), str(size.held_out)], ["watched"] * watched
    settings = [
        f"trainers.program={json.dumps([sys.executable, 'online.py', equation, *numbers, str(result), *more])}",
        f'solvers.function="problem:{equation.replace("-", "_")}"',
        f"parameters.count={size.simulations}",
        f"seed={1000 + seed}",
        f"parameters.sampler=arms:{'PublishedArm' if arm.sampler in PUBLISHED else 'Arm'}",
        f"parameters.learner_rank={str(arm.sampler in _WITH_TORCH).lower()}",
        f"fields.u.shape=[{EQUATIONS[equation].fields}, 128]",
        *(f"parameters.space.{name}={json.dumps(range_)}" for name, range_ in space.items()),
    ]
    described = json.dumps(dataclasses.asdict(arm) | {"times": str(times), "equation": equation})
    mpidata(folder, _HERE / "stepping.yaml", *settings, EXPERIMENT_ARM=described, PYTHONPATH=str(ROOT))
    found: dict[str, Any] = json.loads(result.read_text())
    if errors := found.pop("errors", None):
        found["correlations"] = correlations(_file_of(folder, "losses.csv"), errors)
    sampler_s = float(times.read_text())
    return digits(found | {"sampler_s": sampler_s, "drawn": _drawn(folder, size, next(iter(space.items())))})


def _drawn(folder: Path, size: _Size, axis: tuple[str, tuple[float, float]]) -> list[list[int]]:
    """Count the simulations in tenths of the first parameter's range, for each quarter of the simulations."""
    with _file_of(folder, "parameters.csv").open(newline="") as file:
        rows = np.array([float(row[axis[0]]) for row in csv.DictReader(file)])[: size.simulations]
    return [np.histogram(part, _BINS, axis[1])[0].tolist() for part in np.array_split(rows, _QUARTERS)]


def _file_of(folder: Path, name: str) -> Path:
    (path,) = (folder / "runs").glob(f"*/*/{name}")
    return path
