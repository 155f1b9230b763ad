"""Three ways to choose the simulations that a surrogate which steps forward in time is trained on."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.runs import Part, Run, mpidata
from experiments.stepping.page import render
from experiments.stepping.problem import EQUATIONS

__all__ = ["EQUATIONS", "part"]

_HERE = Path(__file__).resolve().parent
ARMS = ("uniform", "breed", "power")
_REPEATS, _BATCH, _WINDOWS = 4, 32, 39  # windows of a simulation


@dataclass(frozen=True)
class _Size:
    simulations: int
    seeds: int
    held_out: int

    @property
    def batches(self) -> int:
        """How many a run has."""
        return self.simulations * _WINDOWS * _REPEATS // _BATCH


_WHOLE, _QUICK = _Size(400, 10, 1000), _Size(60, 2, 200)


def part(equation: str, quick: bool, output: Path) -> Part:
    """Make the experiment for one of the equations; results are kept in `output`."""
    size = _QUICK if quick else _WHOLE
    runs = [
        Run(f"{arm}-{seed}", partial(_run, equation, size, arm, seed)) for seed in range(size.seeds) for arm in ARMS
    ]
    shown = list(EQUATIONS[equation].space)[:2]
    return Part(equation, runs, partial(render, equation, ARMS, size.seeds, size.simulations, shown))


def _run(equation: str, size: _Size, arm: str, seed: int, folder: Path) -> dict[str, Any]:
    result, space = folder / "result.json", EQUATIONS[equation].space
    numbers = [str(seed), str(size.batches), str(size.held_out)]
    settings = [
        f"trainers.program={json.dumps([sys.executable, 'online.py', equation, *numbers, str(result)])}",
        f'solvers.function="problem:{equation.replace("-", "_")}"',
        f"parameters.count={size.simulations}",
        f"parameters.sampler={arm}",
        f"seed={1000 + seed}",
        *(f"parameters.space.{name}={json.dumps(range_)}" for name, range_ in space.items()),
    ]
    mpidata(folder, _HERE / "stepping.yaml", *(word for setting in settings for word in ("--set", setting)))
    found: dict[str, Any] = json.loads(result.read_text())
    (drawn,) = (folder / "runs").glob("*/*/parameters.csv")
    with drawn.open(newline="") as file:
        rows = list(csv.DictReader(file))
    drawn_of = {name: [float(f"{float(row[name]):.3g}") for row in rows] for name in list(space)[:2]}
    return found | {"drawn": drawn_of}
