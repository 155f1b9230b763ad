"""How throughput and CPU time per sample change with the number of groups, trainers and fields."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Results, Settings, curves, exponent, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, run_processes

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "growth"
ABOUT = "throughput and CPU time of a sample as groups, trainers and fields grow"
# What grows, from a job of 1 group (2 if trainers grow), 1 trainer and 1 field.
GROWING = {"groups": [1, 2, 4, 8], "trainers": [1, 2, 4], "fields": [1, 2, 4, 8, 16]}
_SAMPLE_BYTES = 64 << 10
_QUEUE = 128
_PROGRAM = ROOT / "benchmarks" / "programs" / "growth.py"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    try:
        built("growth")
    except BenchmarkError as error:
        return [f"{NAME}: {error}"]
    cases = [
        Case(f"{count} {what}", partial(measure, what, count, settings.seconds))
        for what, counts in GROWING.items()
        for count in counts
    ]
    return run_rounds(NAME, cases, settings, render)


def measure(what: str, count: int, seconds: float) -> dict[str, float]:
    """Run one job."""
    sizes = {"groups": 2 if what == "trainers" else 1, "trainers": 1, "fields": 1} | {what: count}
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = Cell(Path(folder), _SAMPLE_BYTES, seconds, 0, _QUEUE)
        cell.write()
        (cell.folder / "job.yaml").write_text(_job(cell, **sizes))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        run_processes([["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]], cell)
        trainers = [json.loads(path.read_text()) for path in cell.folder.glob("trainer-*.json")]
        solvers = [json.loads(path.read_text()) for path in cell.folder.glob("solver-*.json")]
    samples = sum(trainer["samples"] for trainer in trainers)
    if len(trainers) != sizes["trainers"] or len(solvers) != sizes["groups"] or not samples:
        raise BenchmarkError(f"{len(trainers)} trainers and {len(solvers)} solvers wrote results, {samples} samples.")
    cpu = sum(one["cpu_s"] for one in trainers + solvers)
    return {
        "per_second": sum(trainer["samples"] / trainer["seconds"] for trainer in trainers),
        "cpu_us": 1e6 * cpu / samples,
    }


def _job(cell: Cell, groups: int, trainers: int, fields: int) -> str:
    elements = cell.elements // fields
    declared = ", ".join(f"u{i}: {{dtype: float32, shape: [{elements}]}}" for i in range(fields))
    return f"""\
trainers: {{ranks: {trainers}, program: [python, {str(_PROGRAM)!r}, {str(cell.folder)!r}]}}
solvers:
  groups: {groups}
  program: [{str(built("growth"))!r}, {str(cell.folder)!r}, "{elements}", "{fields}"]
parameters: {{count: {groups}, space: {{alpha: [0, 1]}}}}
fields: {{{declared}}}
buffer: {{policy: fifo, capacity: {cell.queue}}}
"""


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    parts = [
        f"A sample has {_SAMPLE_BYTES >> 10} KB in total. In each table one number grows. The others are 1, except "
        "that there are 2 groups if trainers grow."
    ]
    plots = {"per_second": {}, "cpu_us": {}}  # type: dict[str, dict[str, list[tuple[float, Spread | None]]]]
    for what, counts in GROWING.items():
        rows = {}
        for title, quantity, factor in (
            ("thousand samples a second", "per_second", 1e-3),
            ("CPU of a sample on all ranks, µs", "cpu_us", 1.0),
        ):
            spreads = [results.spread(f"{count} {what}", quantity, factor) for count in counts]
            plots[quantity][what] = list(zip(counts, spreads, strict=True))
            rows[title] = [*spreads, _exponent(results, what, counts, quantity)]
        parts += [f"## As {what} grow", grid(what, [*map(str, counts), "exponent"], rows)]
    parts.append(
        "A value is proportional to a power of the number, with this exponent: 0 is a cost that does not grow, 1 a "
        "cost that doubles with the number. With more ranks than cores, throughput cannot grow."
    )
    title = "Growth: groups, trainers, fields"
    (output / f"{NAME}.md").write_text(page(NAME, title, contents, parts), encoding="utf-8")
    names = {"per_second": "thousand samples a second", "cpu_us": "µs of CPU for a sample"}
    curves(output / f"{NAME}.png", [Plot(lines, "number", names[quantity]) for quantity, lines in plots.items()])


def _exponent(results: Results, what: str, counts: list[int], quantity: str) -> str:
    spreads = [(count, results.spread(f"{count} {what}", quantity)) for count in counts]
    slope = exponent([(count, spread.median) for count, spread in spreads if spread])
    return "–" if slope is None else f"{slope:.2f}"
