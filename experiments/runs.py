"""The runs of an experiment: each runs once and is stored as a line of a file, so that they can run in portions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpidata.run.own_files import write_text

__all__ = ["ROOT", "Part", "Results", "Run", "call", "digits", "make", "mpidata", "read"]

ROOT = Path(__file__).resolve().parents[1]
Results = dict[str, dict[str, Any]]  # by the names of runs


@dataclass(frozen=True)
class Run:
    """One run: its name, and `make`, which gets a working folder and the available results.

    No later run starts before a `needed` one has ended.
    """

    name: str
    make: Callable[[Path, Results], dict[str, Any]]
    needed: bool = False


@dataclass(frozen=True)
class Part:
    """An experiment.

    Attributes
    ----------
    name : str
        Also the name of its files.
    runs : sequence of Run
        The runs; those that need others come after them.
    render : callable
        Writes the page of the available results into a folder.
    """

    name: str
    runs: Sequence[Run]
    render: Callable[[Results, Path], None]


def make(part: Part, output: Path, minutes: float, at_once: int = 1) -> bool:
    """Make missing runs, at least one and for `minutes`, and write the page. Return whether all are complete."""
    output.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    results = read(part, output)
    missing = [run for run in part.runs if run.name not in results]
    running: dict[Future[tuple[dict[str, Any], float]], Run] = {}
    begun, longest = 0, 0.0
    with ThreadPoolExecutor(at_once) as pool:
        while True:
            while begun < len(missing) and len(running) < at_once and not any(run.needed for run in running.values()):
                if begun and time.monotonic() + longest > deadline:
                    break
                running[pool.submit(_timed, missing[begun], dict(results))] = missing[begun]
                begun += 1
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(done).name
                results[name], seconds = done.result()
                _write(part, results, output)
                longest = max(longest, seconds)
                print(f"{part.name}: {name} took {seconds:.0f} s", flush=True)
    part.render(results, output)
    if left := len(missing) - begun:
        print(f"{part.name}: {left} runs are left; the same command resumes.")
    return not left


def _timed(run: Run, results: Results) -> tuple[dict[str, Any], float]:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="experiment-", ignore_cleanup_errors=True) as folder:
        return run.make(Path(folder), results), time.monotonic() - begun


def read(part: Part, output: Path) -> Results:
    """Read the available results of an experiment's runs."""
    path = output / f"{part.name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = {result.pop("run"): result for result in map(json.loads, lines)}
    return {run.name: found[run.name] for run in part.runs if run.name in found}


def _write(part: Part, results: Results, output: Path) -> None:
    in_order = [run.name for run in part.runs if run.name in results]
    lines = [json.dumps({"run": name} | results[name]) for name in in_order]
    write_text(output / f"{part.name}.jsonl", "\n".join(lines) + "\n")


def digits(value: Any, count: int = 4) -> Any:
    """Round all numbers in a result to `count` significant digits."""
    if isinstance(value, dict):
        return {name: digits(one, count) for name, one in value.items()}
    if isinstance(value, list):
        return [digits(one, count) for one in value]
    return float(f"{value:.{count}g}") if isinstance(value, float) else value


def mpidata(folder: Path, job: Path, *settings: str, **variables: str) -> None:
    """Run a job with settings and environment variables; its run folder is in `folder`."""
    command = [str(Path(sys.executable).parent / "mpidata"), "run", str(job), "--set", f"output={folder / 'runs'}"]
    call(folder, [*command, *(word for setting in settings for word in ("--set", setting))], **variables)


def call(folder: Path, command: Sequence[str], **variables: str) -> None:
    """Run a program to its end; raise RuntimeError with the end of its log if it fails."""
    with open(folder / "log", "ab") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        status = subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=1800).returncode
    if status:
        end = (folder / "log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with exit status {status}:\n{end}")
