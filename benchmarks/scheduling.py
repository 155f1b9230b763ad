"""The scheduler alone: dispatches per second and memory, with a million queued simulations and 1 to 10,000 groups."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.cases import Case, Plot, Settings, curves, exponent, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "scheduler"
ABOUT = "dispatches a second and memory of the scheduler alone"
GROUPS = [1, 10, 100, 1_000, 10_000]
SIMULATIONS = 1_000_000


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    cases = [Case(f"{groups} groups", partial(measure, groups, settings.seconds)) for groups in GROUPS]
    return run_rounds(NAME, cases, settings, render)


def measure(groups: int, seconds: float) -> dict[str, float]:
    """Run the scheduler in its own process."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        arguments = [folder, str(groups), str(SIMULATIONS), str(seconds)]
        command = [sys.executable, "-m", "benchmarks.programs.scheduling", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60 + 20 * seconds)
        if done.returncode != 0:
            raise BenchmarkError(done.stderr[-600:])
        return dict(json.loads((Path(folder) / "result.json").read_text()))


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    sizes = {int(case.split()[0]): case for case in results.cases}
    columns = [f"{groups:,}" for groups in sizes]
    quantities = {
        "thousand dispatches a second": ("per_second", 1e-3),
        "CPU for each, µs": ("cpu_us", 1.0),
        "memory of the queue, MB": ("queue_mb", 1.0),
        "the whole process, MB": ("queued_mb", 1.0),
        "the whole process at the end, MB": ("end_mb", 1.0),
    }
    rows = {
        name: [results.spread(case, quantity, factor) for case in sizes.values()]
        for name, (quantity, factor) in quantities.items()
    }
    cost = {groups: results.spread(case, "cpu_us") for groups, case in sizes.items()}
    slope = exponent([(groups, spread.median) for groups, spread in cost.items() if spread])
    parts = [
        f"{SIMULATIONS:,} simulations of 4 parameters are queued.",
        grid("groups", columns, rows),
        f"The CPU time of a dispatch grows as groups^{slope:.2f}." if slope is not None else "",
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "The scheduler alone", contents, parts), encoding="utf-8")
    line = list(cost.items())
    curves(output / f"{NAME}.png", [Plot({"dispatch": line}, "groups", "µs of CPU for a dispatch", log="x")])
