"""Time from kill -9 of a solver rank to the first new sample of its replacement, a spare or a spawned group."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.build import built
from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError

__all__ = ["ABOUT", "NAME", "render", "run"]

NAME = "failure"
ABOUT = "from kill -9 of a solver rank to the first sample of its replacement"
STARTS = {"spare": "start: split, spares: 1", "spawn": "start: spawn"}
RANKS = [1, 2]
_LIMIT_S = 60
_PROGRAM = ROOT / "benchmarks" / "programs" / "failure.py"
_MOMENTS = {
    "to_lost": "until the scheduler has given the group up",
    "to_given": "until the replacement has the simulation",
    "to_sample": "until its first new sample is in the training loop",
    "own_start": "of that, the start of the replacement's own program",
}


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    try:
        built("dying")
    except BenchmarkError as error:
        return [f"{NAME}: {error}"]
    cases = [Case(_name(start, ranks), partial(measure, start, ranks)) for start in STARTS for ranks in RANKS]
    return run_rounds(NAME, cases, settings, render)


def _name(start: str, ranks: int) -> str:
    return f"{start}, {ranks} rank{'s' if ranks > 1 else ''}"


def measure(start: str, ranks: int) -> dict[str, float]:
    """Run one job in which a rank dies; return durations in seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "job.yaml").write_text(_job(folder, start, ranks))
        mpidata = str(Path(sys.executable).parent / "mpidata")
        command = ["timeout", "-k", "5", str(_LIMIT_S), mpidata, "run", "job.yaml"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        try:
            died = float((folder / "died").read_text())
            came = float((folder / "came").read_text())
            began, joined, given = map(float, (folder / "again").read_text().split())
            (events,) = folder.glob("runs/*/1/events.jsonl")
            lost = [event["time"] for event in map(json.loads, events.open()) if event["event"] == "group_lost"][0]
        except (OSError, ValueError, IndexError) as error:
            raise BenchmarkError(f"{error}; {done.stdout[-600:]} {done.stderr[-600:]}") from None
    # A spare started long before; the start of a spawned group counts from the program's first line.
    own = joined - began if began > died else 0.0
    return {"to_lost": lost - died, "to_given": given - died, "to_sample": came - died, "own_start": own}


def _job(folder: Path, start: str, ranks: int) -> str:
    return f"""\
trainers: {{ranks: 1, program: [python, {str(_PROGRAM)!r}, {str(folder)!r}]}}
solvers:
  {{{STARTS[start]}, groups: 2, ranks_per_group: {ranks}, program: [{str(built("dying"))!r}, {str(folder)!r}]}}
parameters: {{count: 4, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: []}}}}
buffer: {{policy: fifo, capacity: 100}}
"""


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    names = [_name(start, ranks) for start in STARTS for ranks in RANKS]
    rows = {text: [results.spread(name, quantity) for name in names] for quantity, text in _MOMENTS.items()}
    parts = [
        "There are two groups. A rank of one is killed in the middle of a step, while the other one is busy.",
        grid("seconds from the kill", names, rows),
        "Each round has one kill per column.",
    ]
    title = "Failure: from kill -9 to the next sample"
    (output / f"{NAME}.md").write_text(page(NAME, title, contents, parts), encoding="utf-8")
    lines = {start: [(ranks, results.spread(_name(start, ranks), "to_sample")) for ranks in RANKS] for start in STARTS}
    curves(output / f"{NAME}.png", [Plot(lines, "ranks of a group", "s from the kill to the next sample", log="")])
