"""Many producers and one training loop: how many samples arrive, and how long the producers are held up."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Results, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, Peer, peer_python, run_processes
from benchmarks.figures import Spread
from benchmarks.many_to_one.board import BATCH, COMPUTE_S, plan
from benchmarks.table import size_name

__all__ = ["ABOUT", "NAME", "measure", "render", "run"]

NAME = "producers"
ABOUT = "2 to 16 producers to one training loop, and how long they are held up"
OURS = {"mpidata": "put", "mpidata iput": "iput"}
MODULES = {"files in memory": "files", "Redis": "redis_store", "ADIOS2 SST": "adios_sst"}
NEEDS = {"files in memory": "numpy", "Redis": "redis", "ADIOS2 SST": "adios2"}
GOALS = {"files in memory": 1.3, "Redis": 2.0, "ADIOS2 SST": 2.0}
MOST_HELD = 0.05
WAYS = [*OURS, *MODULES]
PRODUCERS = [2, 4, 8, 16]
SIZES = [1 << 20, 4 << 20, 16 << 20, 32 << 20]
_PROGRAM = ROOT / "benchmarks" / "programs" / "producers.py"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what is missing or failed."""
    without = {way: _missing(way) for way in WAYS}
    cases = [
        Case(case_name(way, count, size), partial(measure, way, count, size, settings.seconds))
        for count in PRODUCERS
        for size in SIZES
        for way in WAYS
        if not without[way]
    ]
    return run_rounds(NAME, cases, settings, render, [f"{way}: {reason}" for way, reason in without.items() if reason])


def _missing(way: str) -> str | None:
    if way == "Redis" and not shutil.which("redis-server"):
        return "no redis-server"
    if way in MODULES:
        return Peer(way, "", MODULES[way], NEEDS[way], way).missing()
    try:
        built("producers")
    except BenchmarkError as error:
        return str(error)
    return None


def case_name(way: str, producers: int, size: int) -> str:
    """Return the name of a measurement in the file."""
    return f"{way}, {producers} of {size_name(size)}"


def measure(way: str, producers: int, size: int, seconds: float) -> dict[str, float]:
    """Measure one way for `seconds`; `held` is the share of time that a producer is held up by its puts."""
    memory = "/dev/shm" if MODULES.get(way) == "files" else None
    with tempfile.TemporaryDirectory(prefix="bench-", dir=memory, ignore_cleanup_errors=True) as folder:
        cell = plan(Path(folder), size, producers, seconds)
        cell.write()
        commands = _job(way, cell, producers) if way in OURS else _peers(way, cell, producers)
        result = run_processes(commands, cell, {"MPIDATA_REPORT": "false"})
        held = json.loads((cell.folder / "held.json").read_text())
    return {"samples_per_s": result.samples / result.seconds, "held": held}


def _job(way: str, cell: Cell, producers: int) -> list[list[str]]:
    computing = f"{1e6 * COMPUTE_S:.0f}"
    arguments = [str(cell.folder), str(producers), str(cell.elements), str(cell.warm), computing, OURS[way]]
    program = [str(built("producers")), *arguments]
    # Two batches in the buffer: the other ways also have memory for two batches besides their queues.
    in_flight = min(4, cell.queue)
    capacity = 2 * BATCH + producers * (cell.queue - in_flight)
    (cell.folder / "job.yaml").write_text(f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAM)!r}, {str(cell.folder)!r}, "{producers}"]}}
solvers: {{groups: {producers}, program: {json.dumps(program)}, in_flight: {in_flight}}}
parameters: {{count: {producers}, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: [{cell.elements}]}}}}
buffer: {{policy: fifo, capacity: {capacity}}}
""")
    mpidata = str(Path(sys.executable).parent / "mpidata")
    return [["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]]


def _peers(way: str, cell: Cell, producers: int) -> list[list[str]]:
    start = [peer_python(), "-m", f"benchmarks.many_to_one.{MODULES[way]}"]
    commands = [[*start, "produce", str(cell.folder), str(number), str(producers)] for number in range(producers)]
    if way == "Redis":
        server = ["redis-server", "--port", "0", "--unixsocket", f"{cell.folder}/redis", "--save", "", "--appendonly"]
        commands.insert(0, ["timeout", f"{cell.limit_s:.0f}", *server, "no"])
    return [*commands, [*start, "consume", str(cell.folder), str(producers)]]


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    columns = [f"{count} producers" for count in PRODUCERS]
    held = {f"{size_name(size)}, {way}": _spreads(results, way, size, "held", 100.0) for size in SIZES for way in WAYS}
    parts = [
        f"A producer computes for {1e3 * COMPUTE_S:.0f} ms, then puts a sample. It sleeps instead of computing, as if "
        "it had its own core or accelerator. *Made* is what arrives if no producer ever waits in a put.",
        "## Goals",
        "\n".join(_goals(results)),
        "## MB/s",
        grid("", columns, _rates(results, 1e-6)),
        "## Samples per second",
        grid("", columns, _rates(results)),
        "## Share of the time that a producer waits in puts, %",
        grid("", columns, held),
        "## Ratio of mpidata to",
        grid("", columns, _ratios(results)),
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "Many producers, one training", contents, parts), encoding="utf-8")
    plots = [_plot(results, size, "samples_per_s", size / 1e6, "MB/s", "xy") for size in (SIZES[0], SIZES[-1])]
    plots.append(_plot(results, SIZES[1], "held", 100.0, "held up, %", "x"))
    curves(output / f"{NAME}.png", plots)


def _plot(results: Results, size: int, quantity: str, factor: float, axis: str, log: str) -> Plot:
    lines = {
        way: list(zip(map(float, PRODUCERS), _spreads(results, way, size, quantity, factor), strict=True))
        for way in WAYS
    }
    return Plot(lines, "producers", f"{size_name(size)}: {axis}", log)


def made(producers: int) -> float:
    """Return the samples per second of producers that are not held up."""
    return producers / COMPUTE_S


def _spreads(results: Results, way: str, size: int, quantity: str, factor: float) -> list[Spread | None]:
    return [results.spread(case_name(way, count, size), quantity, factor) for count in PRODUCERS]


def _rates(results: Results, of_bytes: float | None = None) -> dict[str, list[Spread | None]]:
    """Return the rates by size, what the producers make first, then all ways: samples, or bytes times a factor."""
    rows: dict[str, list[Spread | None]] = {}
    for size in SIZES:
        scale = of_bytes * size if of_bytes else 1.0
        rows[f"{size_name(size)}, *made*"] = [Spread.of([scale * made(count)]) for count in PRODUCERS]
        for way in WAYS:
            rows[f"{size_name(size)}, {way}"] = _spreads(results, way, size, "samples_per_s", scale)
    return rows


def _ratio(results: Results, to: str, producers: int, size: int) -> Spread | None:
    return results.ratio(case_name(WAYS[0], producers, size), case_name(to, producers, size), "samples_per_s")


def _ratios(results: Results) -> dict[str, list[Spread | None]]:
    return {
        f"{to}, {size_name(size)}": [_ratio(results, to, count, size) for count in PRODUCERS]
        for to in GOALS
        for size in SIZES
    }


def _goals(results: Results) -> list[str]:
    """Return a line per goal: in how many of the possible cases it is met."""
    every = [(count, size) for size in SIZES for count in PRODUCERS]
    lines = []
    for to, goal in GOALS.items():
        known = []
        for count, size in every:
            rate, ratio = results.spread(case_name(to, count, size), "samples_per_s"), _ratio(results, to, count, size)
            if rate and ratio and goal * rate.median <= made(count):
                known.append(ratio.median >= goal)
        where = f"if {to} delivers at most 1/{goal:g} of what is made"
        lines.append(f"- At least {goal:g} times {to}, {where}: {_judged(known)}.")
    for way in OURS:
        held = []
        for count, size in every:
            most = max((rate.median for rate in _spreads(results, way, size, "samples_per_s", 1.0) if rate), default=0)
            share = results.spread(case_name(way, count, size), "held")
            if share and 2 * made(count) <= most:
                held.append(share.median <= MOST_HELD)
        where = "if at most half as much is made as arrives from more producers"
        lines.append(f"- {way}: at most {100 * MOST_HELD:g} % of the time in puts, {where}: {_judged(held)}.")
    return lines


def _judged(met: Sequence[bool]) -> str:
    if not met:
        return "not measured, or no such case"
    return f"{'met' if all(met) else 'missed'} ({sum(met)} of {len(met)} cases)"
