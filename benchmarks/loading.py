"""Shared code of the loader benchmarks: runs one way to its end and measures the memory of all its processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from benchmarks.build import mpirun
from benchmarks.contender import ROOT, BenchmarkError, Cell, peer_python

__all__ = ["run_way"]

_LIMIT_S = 240.0
_LOOK_EVERY_S = 0.5

Sizes = tuple[int, int]  # loaders and trainers of a job


def run_way(
    program: str, how: str, kind: str, arguments: Sequence[str], loaders: int = 1, trainers: int = 1
) -> dict[str, float]:
    """Run programs/<program>.py KIND FOLDER ARGUMENTS...; how: job, mpi, process or peer.

    Return what the program wrote, plus `memory_mb`, the peak sum of its processes' memory; shared memory is divided
    among them.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        path = str(ROOT / "benchmarks" / "programs" / f"{program}.py")
        words = [path, kind, name, *arguments]
        command, variables = _COMMANDS[how](folder, words, (loaders, trainers))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            try:
                memory_mb = _watch(process)
            finally:
                with contextlib.suppress(ProcessLookupError):  # a worker may still be running
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        try:
            found: dict[str, float] = json.loads((folder / f"{program}.json").read_text())
        except (OSError, ValueError):
            end = (folder / "log").read_text(errors="replace")[-800:]
            raise BenchmarkError(f"{kind} wrote no result; exit status {process.returncode} | {end}") from None
    return {**found, "memory_mb": memory_mb}


def _watch(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end; return the peak memory in MB."""
    highest, deadline = 0.0, time.monotonic() + _LIMIT_S
    while process.poll() is None:
        used = 0
        with contextlib.suppress(psutil.Error):
            for one in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    used += one.memory_full_info().pss
        highest = max(highest, used / 1e6)
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_EVERY_S)
    return highest


def _job(folder: Path, words: Sequence[str], sizes: Sizes) -> tuple[list[str], dict[str, str]]:
    program = ", ".join(json.dumps(word) for word in words)
    loaders, trainers = sizes
    job = f"trainers: {{ranks: {trainers}, program: [python, {program}]}}\nloaders: {{ranks: {loaders}}}\n"
    (folder / "job.yaml").write_text(job)
    return [str(Path(sys.executable).parent / "mpidata"), "run", "job.yaml"], {}


def _mpi(folder: Path, words: Sequence[str], sizes: Sizes) -> tuple[list[str], dict[str, str]]:
    return mpirun(2, [sys.executable, *words], Cell(folder, 4, _LIMIT_S, 0, 1))


_COMMANDS: dict[str, Callable[[Path, Sequence[str], Sizes], tuple[list[str], dict[str, str]]]] = {
    "job": _job,
    "mpi": _mpi,
    "process": lambda folder, words, sizes: ([sys.executable, *words], {}),
    "peer": lambda folder, words, sizes: ([peer_python(), *words], {}),
}
