"""Many ranks on few cores: time until all have a simulation, and CPU time while they wait."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from benchmarks import dispatching
from benchmarks.build import PLACEMENT, built
from benchmarks.contender import ROOT, BenchmarkError, Cell
from benchmarks.gate import Gate
from mpidata.launch.starting.command import mpirun_environment
from mpidata.launch.starting.mpirun import find_mpirun

__all__ = [
    *("cell_folder", "first_dispatch_s", "idle_share", "log_of", "running", "start_bare_s", "start_beside_bare"),
    "wait_for",
]

_RANKS = 64
_LIMIT_S = 120.0
_SETTLED_S, _IDLE_S = 5.0, 10.0
_BARE_TRAINER = "import torch; from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"


@contextlib.contextmanager
def running(command: list[str], folder: Path, environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in its own session; afterwards end it with everything that it started."""
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(gate: Gate, process: subprocess.Popen[bytes], made: int, folder: Path, limit_s: float = _LIMIT_S) -> None:
    """Wait until `made` ranks have arrived; raise BenchmarkError if they do not."""
    deadline = time.monotonic() + limit_s
    while gate.made < made:
        if process.poll() is not None or time.monotonic() > deadline:
            raise BenchmarkError(log_of(folder))
        time.sleep(1e-3)


def log_of(folder: Path) -> str:
    """Return the end of the output."""
    return (folder / "log").read_text(errors="replace")[-800:]


@contextlib.contextmanager
def cell_folder(limit_s: float = _LIMIT_S) -> Iterator[Cell]:
    """Make a temporary folder with a closed gate."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        cell = Cell(Path(name), 4, 1e-3, 0, 1024, start_s=limit_s)
        cell.write()
        yield cell


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _mpidata() -> list[str]:
    return [str(Path(sys.executable).parent / "mpidata"), "run", "job.yaml"]


def first_dispatch_s(ranks: int = _RANKS) -> float:
    """Return the seconds from `mpidata run` until each of `ranks` groups of one rank has its first simulation."""
    with cell_folder() as cell:
        (cell.folder / "job.yaml").write_text(dispatching.job(cell, ranks))
        started, gate = time.monotonic(), Gate(cell.folder, _LIMIT_S)
        with running(_mpidata(), cell.folder, _environ()) as process:
            wait_for(gate, process, ranks, cell.folder)
            return time.monotonic() - started


def start_bare_s(ranks: int = _RANKS) -> float:
    """Return the seconds from mpirun until `ranks` ranks, one more and one that imports torch reach a barrier."""
    with cell_folder() as cell:
        started, gate = time.monotonic(), Gate(cell.folder, _LIMIT_S)
        trainer = ["-n", "1", *PLACEMENT, sys.executable, "-c", _BARE_TRAINER]
        others = ["-n", str(ranks + 1), str(built("bare")), str(cell.folder)]
        variables = mpirun_environment(os.geteuid() == 0, environ=os.environ)
        command = [str(find_mpirun()), *trainer, ":", *others]
        with running(command, cell.folder, {**_environ(), **variables}) as process:
            wait_for(gate, process, ranks + 1, cell.folder)
            return time.monotonic() - started


def start_beside_bare() -> float:
    """Return by how many seconds the first dispatches come later than ranks that only start MPI."""
    return first_dispatch_s() - start_bare_s()


def idle_share(ranks: int = _RANKS) -> float:
    """Return the CPU time of all processes of a job that waits for a slow step, in seconds per second."""
    with cell_folder() as cell:
        (cell.folder / "job.yaml").write_text(_idle_job(cell, ranks))
        with running(_mpidata(), cell.folder, _environ()) as process:
            wait_for(Gate(cell.folder, _LIMIT_S), process, 1, cell.folder)
            time.sleep(_SETTLED_S)
            before, started = _cpu_s(process.pid), time.monotonic()
            time.sleep(_IDLE_S)
            return (_cpu_s(process.pid) - before) / (time.monotonic() - started)


def _idle_job(cell: Cell, ranks: int) -> str:
    """Return a job with one simulation; of the idle groups, half wait in `mpidata_next` and half are spares."""
    trainer = "import mpidata; [None for batch in mpidata.MPIStreamDataset(batch_size=1)]"
    waiting = ranks // 2
    return f"""\
trainers: {{ranks: 1, program: [python, -c, {trainer!r}]}}
solvers:
  groups: {ranks - waiting}
  spares: {waiting}
  program: [{str(built("idle"))!r}, {str(cell.folder)!r}]
parameters: {{count: 1, space: {{alpha: [0, 1]}}}}
fields: {{u: {{dtype: float32, shape: []}}}}
"""


def _cpu_s(pid: int) -> float:
    whole = psutil.Process(pid)
    return sum(sum(one.cpu_times()[:2]) for one in [whole, *whole.children(recursive=True)])
