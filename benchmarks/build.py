"""Builds the C programs, and starts MPI programs as `mpidata run` starts its ranks."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.contender import ROOT, BenchmarkError, Cell
from mpidata.launch.starting.command import mpirun_environment
from mpidata.launch.starting.mpirun import find_mpirun

__all__ = ["PLACEMENT", "built", "mpirun"]

# The options of mpidata.launch.starting.command.mpirun_command; a test compares them.
PLACEMENT = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
PLACEMENT += ["--with-ft", "ulfm", "--prtemca", "state_base_recoverable", "1"]  # the defaults of jobs with Open MPI 5
_SOLVERS = ["solver", "growth", "dying", "dispatch", "meshes", "idle", "producers", "asks"]
_FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(command)} has failed: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def built(program: str, tools: Path = Path(sys.executable).parent) -> Path:
    """Build `programs/<program>.c`, once per process, and return its path; raise BenchmarkError on failure.

    `tools` is the program folder of an environment with an MPI and mpidata; the default is this environment's.
    """
    own = tools == Path(sys.executable).parent
    target = ROOT / "build" / "benchmarks" / (program if own else f"{program}-{tools.parent.name}")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = ROOT / "benchmarks" / "programs" / f"{program}.c"
    libraries = []
    if program in _SOLVERS:
        libraries = _output([str(tools / "mpidata"), "config", "--cflags", "--libs"]).split()
    mpicc = _output([str(tools / "mpidata"), "config", "--mpicc"]).strip()
    _output([mpicc, *_FLAGS, str(source), "-o", str(target), *libraries])
    return target


def mpirun(ranks: int, command: list[str], cell: Cell) -> tuple[list[str], dict[str, str]]:
    """Return the command line, with a time limit, and the environment of an MPI program."""
    limit = ["timeout", "-k", "5", f"{cell.limit_s:.0f}"]
    variables = mpirun_environment(os.geteuid() == 0, environ=os.environ)
    return [*limit, str(find_mpirun()), "-n", str(ranks), *PLACEMENT, *command], variables
