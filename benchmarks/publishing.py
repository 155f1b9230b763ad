"""Cost of publishing: a call compared with a memcpy, and the training steps while a solver reads the versions."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, run_processes
from benchmarks.pairs import Estimate

__all__ = ["ABOUT", "NAME", "measure_call", "measure_training", "render", "run"]

NAME = "publishing"
ABOUT = "a call of publish beside a memcpy, and a training's steps beside one that publishes nothing"
SIZES = {"1 MB": 1_000_000, "10 MB": 10_000_000, "100 MB": 100_000_000}
_PROGRAMS = ROOT / "benchmarks" / "programs"
_EVERY_S, _TRAINING = 10.0, "published every 10 s"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    cases = [Case(name, partial(measure_call, size, settings.seconds)) for name, size in SIZES.items()]
    every = _EVERY_S if settings.seconds >= 2 else settings.seconds
    cases.append(Case(_TRAINING, partial(measure_training, 100_000_000, every, 8)))
    return run_rounds(NAME, cases, settings, render)


def measure_call(size: int, seconds: float) -> dict[str, float]:
    """Publish for `seconds` without a job, and copy into reused memory."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell(Path(folder), 4, seconds, 0, 64)
        cell.write()
        (cell.folder / "job.yaml").write_text(_job(cell, size, 0.0, 0))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        command = ["timeout", "-k", "5", "120", mpidata, "try", "--made-up", "job.yaml"]
        run_processes([[*command, str(_PROGRAMS / "publishing_call.py"), str(size), str(seconds)]], cell)
        found: dict[str, float] = json.loads((cell.folder / "call.json").read_text())
    return found


def measure_training(size: int, every_s: float, versions: int) -> dict[str, float]:
    """Run one job that publishes repeatedly while a solver reads."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell(Path(folder), 4, versions * every_s, 0, 64, start_s=60.0)
        cell.write()
        (cell.folder / "job.yaml").write_text(_job(cell, size, every_s, versions))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        run_processes([["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]], cell)
        trainer = json.loads((cell.folder / "trainer.json").read_text())
        read = json.loads((cell.folder / "solver.json").read_text())
    if read < versions - 1:
        raise BenchmarkError(f"The solver has read {read} of {versions} versions.")
    estimate = Estimate.of(trainer["ratios"])
    return {"ratio": estimate.median, "low": estimate.low, "high": estimate.high, "steps_per_s": trainer["steps_per_s"]}


def _job(cell: Cell, size: int, every_s: float, versions: int) -> str:
    arguments = f'"{size}", "{every_s}", "{versions}", {str(cell.folder)!r}'
    return f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAMS / "publishing.py")!r}, {arguments}]}}
solvers: {{groups: 1, program: [python, {str(_PROGRAMS / "publishing_reader.py")!r}, {str(cell.folder)!r}]}}
parameters: {{count: 1, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: [64]}}}}
buffer: {{policy: fifo, capacity: 64}}
"""


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    quantities = {
        "publish, ms": ("publish_ms", 1.0),
        "memcpy, ms": ("memcpy_ms", 1.0),
        "publish to memcpy": ("ratio", 1.0),
    }
    calls = {
        label: [results.spread(name, quantity, factor) for name in SIZES]
        for label, (quantity, factor) in quantities.items()
    }
    steps = {
        label: [results.spread(_TRAINING, quantity)]
        for label, quantity in (
            ("steps/s to those without", "ratio"),
            ("from: lower end of the 90 % interval of each round's median", "low"),
            ("to: upper end", "high"),
            ("steps/s without", "steps_per_s"),
        )
    }
    parts = [
        "Each call copies into memory that was used before, and so does the memcpy.",
        grid("one call", list(SIZES), calls),
        "In one job, the training publishes 100 MB every 10 s. A solver requests it every 50 ms and reads it. Both "
        "share the cores of the machine. A version has no more cost after some tenths of a second, and the speed of "
        "the machine changes over time. Therefore the 2 s from the call on are compared with the 2 s before it, and "
        "the difference is spread over the 10 s.",
        grid("a training of small matrices", [_TRAINING], steps),
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "What publishing costs", contents, parts), encoding="utf-8")
    lines = {
        label: [(size / 1e6, results.spread(name, quantity)) for name, size in SIZES.items()]
        for label, quantity in (("publish", "publish_ms"), ("memcpy", "memcpy_ms"))
    }
    curves(output / f"{NAME}.png", [Plot(lines, "MB", "ms")])
