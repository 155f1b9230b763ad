"""The runs of an experiment: each is made once, and its result kept in a file, so that they can be made in parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpidata.run.own_files import write_text

__all__ = ["ROOT", "Part", "Run", "call", "make", "mpidata"]

ROOT = Path(__file__).resolve().parents[1]
Result = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run: its name, with the seed at its end, and how it is made; `make` gets a folder to work in."""

    name: str
    make: Callable[[Path], Result]


@dataclass(frozen=True)
class Part:
    """An experiment.

    Attributes
    ----------
    name : str
        As its folder.
    runs : sequence of Run
        In an order in which those that need others come after them.
    render : callable
        Writes the page, with what there is, into a folder.
    """

    name: str
    runs: Sequence[Run]
    render: Callable[[Path], None]


def make(part: Part, output: Path, minutes: float) -> bool:
    """Make runs that are not there, one at least and for so long, and write the page. Returns whether all are there."""
    output.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    missing = [run for run in part.runs if not (output / f"{run.name}.json").exists()]
    longest = 0.0
    for number, run in enumerate(missing):
        begun = time.monotonic()
        if number and begun + longest > deadline:
            part.render(output)
            print(f"{part.name}: {len(missing) - number} runs are left; the same command goes on with them.")
            return False
        with tempfile.TemporaryDirectory(prefix="experiment-", ignore_cleanup_errors=True) as folder:
            result = run.make(Path(folder))
        write_text(output / f"{run.name}.json", json.dumps(result, indent=1) + "\n")
        longest = max(longest, time.monotonic() - begun)
        print(f"{part.name}: {run.name} took {time.monotonic() - begun:.0f} s", flush=True)
    part.render(output)
    return True


def mpidata(folder: Path, job: Path, *settings: str) -> None:
    """Run a job, its run folder in `folder`."""
    command = [str(Path(sys.executable).parent / "mpidata"), "run", str(job), "--set", f"output={folder / 'runs'}"]
    call(folder, [*command, *settings])


def call(folder: Path, command: Sequence[str]) -> None:
    """Run a program to its end; raises RuntimeError with the end of its log where it fails."""
    with open(folder / "log", "ab") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        status = subprocess.run(command, stdout=log, stderr=log, env=environment, timeout=1800).returncode
    if status:
        end = (folder / "log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with exit status {status}:\n{end}")
