"""Dispatches in a real job: time and CPU time per dispatch, for 1 to 64 groups of one rank on this machine."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Settings, curves, exponent, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, run_processes

__all__ = ["ABOUT", "NAME", "job", "measure", "render", "run"]

NAME = "dispatch"
ABOUT = "time of a dispatch in a real job, with 1 to 64 solver ranks"
RANKS = [1, 2, 4, 8, 16, 32, 64]
_SIMULATIONS = 400_000
_PROGRAM = ROOT / "benchmarks" / "programs" / "dispatch.py"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    try:
        built("dispatch")
    except BenchmarkError as error:
        return [f"{NAME}: {error}"]
    cases = [Case(f"{ranks} ranks", partial(measure, ranks, settings.seconds)) for ranks in RANKS]
    return run_rounds(NAME, cases, settings, render)


def measure(ranks: int, seconds: float) -> dict[str, float]:
    """Run one job with `ranks` groups of one rank."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        # Ranks that wait in MPI_Init wake up constantly and slow down those that are still starting.
        cell = Cell(Path(folder), 4, seconds, 0, 1024, start_s=60.0 + 2 * ranks)
        cell.write()
        (cell.folder / "job.yaml").write_text(job(cell, ranks))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        run_processes([["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]], cell)
        trainer = json.loads((cell.folder / "trainer.json").read_text())
        solvers = [json.loads(path.read_text()) for path in cell.folder.glob("solver-*.json")]
    asked = sum(solver["asked"] for solver in solvers)
    if len(solvers) != ranks or not asked:
        raise BenchmarkError(f"{len(solvers)} of {ranks} solvers wrote results, with {asked} dispatches.")
    return {
        "per_second": trainer["samples"] / trainer["seconds"],
        "cpu_us": 1e6 * trainer["scheduler_cpu_s"] / trainer["samples"],
        "wait_us": 1e6 * sum(solver["waited_s"] for solver in solvers) / asked,
    }


def job(cell: Cell, groups: int) -> str:
    return f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAM)!r}, {str(cell.folder)!r}, "{groups}"]}}
solvers: {{groups: {groups}, program: [{str(built("dispatch"))!r}, {str(cell.folder)!r}]}}
parameters: {{count: {_SIMULATIONS}, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: []}}}}
buffer: {{policy: fifo, capacity: {cell.queue}}}
"""


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    quantities = {
        "thousand dispatches a second": ("per_second", 1e-3),
        "CPU of the scheduler for each, µs": ("cpu_us", 1.0),
        "wait of a rank for its next simulation, µs": ("wait_us", 1.0),
    }
    rows = {}
    for name, (quantity, factor) in quantities.items():
        spreads = [results.spread(f"{ranks} ranks", quantity, factor) for ranks in RANKS]
        points = zip(RANKS, spreads, strict=True)
        slope = exponent([(ranks, spread.median) for ranks, spread in points if spread])
        rows[name] = [*spreads, "–" if slope is None else f"{slope:.2f}"]
    parts = [
        "Each group has one rank, and each simulation one step. There is one trainer. Each dispatch also moves a "
        "sample.",
        grid("solver ranks", [*map(str, RANKS), "exponent"], rows),
        "All ranks share the cores of the machine, so a rank's wait includes its wait for a core.",
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "Dispatches in a real job", contents, parts), encoding="utf-8")
    cost = [(ranks, results.spread(f"{ranks} ranks", "cpu_us")) for ranks in RANKS]
    curves(output / f"{NAME}.png", [Plot({"dispatch": cost}, "solver ranks", "µs of the scheduler's CPU")])
