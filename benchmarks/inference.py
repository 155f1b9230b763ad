"""Inference for solvers: round trips compared with hand-written MPI, and how full the batches of a function are."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.build import PLACEMENT, built
from benchmarks.cases import Case, Plot, Settings, curves, grid, load, page, run_rounds
from benchmarks.contender import ROOT, BenchmarkError, Cell, run_processes
from mpidata.launch.starting.command import mpirun_environment
from mpidata.launch.starting.mpirun import find_mpirun

__all__ = ["ABOUT", "NAME", "measure_batches", "measure_by_hand", "measure_trips", "render", "run"]

NAME = "inference"
ABOUT = "round trips to an inference rank beside hand-written MPI, and how full its calls are"
RANKS = 16
CALLS = [(RANKS, 0.0), (RANKS, 1.0), (RANKS, 5.0), (RANKS // 2, 0.0)]  # batch, wait_ms
_PROGRAMS = ROOT / "benchmarks" / "programs"
_DRAIN = "import mpidata; [None for batch in mpidata.MPIStreamDataset(batch_size=1)]"


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    try:
        for program in ("asks", "asks_by_hand"):
            built(program)
    except BenchmarkError as error:
        return [f"{NAME}: {error}"]
    cases = [
        Case("mpidata", partial(measure_trips, settings.seconds)),
        Case("by hand", partial(measure_by_hand, settings.seconds)),
        *(Case(_of(*call), partial(measure_batches, *call)) for call in CALLS),
    ]
    return run_rounds(NAME, cases, settings, render)


def _of(batch: int, wait_ms: float) -> str:
    return f"batch: {batch}, wait_ms: {wait_ms:g}"


def measure_trips(seconds: float) -> dict[str, float]:
    """Ask an inference rank in a job for `seconds`."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = _cell(Path(folder), seconds)
        _run_job(cell, 1, [str(built("asks")), str(seconds)], "identity", 1024, 0.0)
        return _trips(cell)


def measure_by_hand(seconds: float) -> dict[str, float]:
    """Measure round trips between two ranks without a job."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = _cell(Path(folder), seconds)
        variables = mpirun_environment(os.geteuid() == 0, environ=os.environ)
        asks = ["-n", "1", str(built("asks_by_hand")), str(seconds)]
        answers = ["-n", "1", sys.executable, str(_PROGRAMS / "asks_by_hand.py")]
        limit = ["timeout", "-k", "5", f"{cell.limit_s:.0f}"]
        run_processes([[*limit, str(find_mpirun()), *PLACEMENT, *asks, ":", *answers]], cell, variables)
        return _trips(cell)


def measure_batches(batch: int, wait_ms: float, questions: int = 60) -> dict[str, float]:
    """Return the share of calls with full batches, of a 10 ms function that ranks ask one row at a time."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        cell = _cell(Path(folder), 10.0)
        program = [sys.executable, str(_PROGRAMS / "asks_often.py"), str(questions)]
        _run_job(cell, RANKS, program, "slow", batch, wait_ms)
        calls = json.loads((cell.folder / "calls.json").read_text())
    calls = calls[5:]  # not all ranks had started yet
    return {"full": sum(rows == batch for rows in calls) / len(calls), "rows": sum(calls) / len(calls)}


def _cell(folder: Path, seconds: float) -> Cell:
    cell = Cell(folder, 4, seconds, 0, 64, start_s=90.0)
    cell.write()
    (folder / "result.json").write_text(json.dumps({"samples": 1, "seconds": seconds}))  # programs write other files
    return cell


def _run_job(cell: Cell, groups: int, program: list[str], function: str, batch: int, wait_ms: float) -> None:
    shutil.copy(_PROGRAMS / "inference_functions.py", cell.folder)
    (cell.folder / "job.yaml").write_text(f"""\
trainers: {{ranks: 1, program: [python, -c, {_DRAIN!r}]}}
solvers: {{groups: {groups}, program: {program}}}
inference: {{function: "inference_functions:{function}", batch: {batch}, wait_ms: {wait_ms}}}
parameters: {{count: {groups}, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: []}}}}
""")
    mpidata = str(Path(sys.executable).parent / "mpidata")
    run_processes([["timeout", "-k", "5", f"{cell.limit_s:.0f}", mpidata, "run", "job.yaml"]], cell)


def _trips(cell: Cell) -> dict[str, float]:
    found = json.loads((cell.folder / "trips.json").read_text())
    return {name: found[name] for name in ("median_us", "p99_us")}


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, results = load(output, NAME)
    ways = ["mpidata", "by hand"]
    trips = {
        title: [results.spread(way, quantity) for way in ways]
        for title, quantity in (("median, µs", "median_us"), ("99 % take at most, µs", "p99_us"))
    }
    batches = {
        title: [results.spread(_of(*call), quantity) for call in CALLS]
        for title, quantity in (("share of calls with full batches", "full"), ("rows of a call", "rows"))
    }
    parts = [
        "## Round trips",
        "A question of 4 KB and an answer of 4 KB, by a function that returns its input. With mpidata this is a job "
        "with a scheduler, a trainer and one solver rank. By hand there are two ranks, which both yield between "
        "probes.",
        grid("4 KB each way", ways, trips),
        "## Calls",
        f"There is one inference rank, whose function takes 10 ms. {RANKS} solver ranks repeatedly ask for one row.",
        grid("", [_of(*call) for call in CALLS], batches),
        "While a call runs, the other ranks send their questions, which the next call answers. Without `wait_ms`, two "
        "halves of the ranks therefore take turns, and a batch has half of their rows. With `wait_ms`, the ranks that "
        "were just answered can ask again before the next call begins.",
    ]
    (output / f"{NAME}.md").write_text(page(NAME, "Answers for solvers", contents, parts), encoding="utf-8")
    full = [(wait_ms, results.spread(_of(RANKS, wait_ms), "full")) for batch, wait_ms in CALLS if batch == RANKS]
    curves(output / f"{NAME}.png", [Plot({"full calls": full}, "wait_ms", "share of calls", log="")])
