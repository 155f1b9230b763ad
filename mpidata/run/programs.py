"""What the ranks of each role run."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["Program", "find_program", "programs_of"]


@dataclasses.dataclass(frozen=True)
class Program:
    """What a rank runs: the arguments, executable first, and the environment variables it is given besides its own."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def find_program(program: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Arguments to start a program with: the executable made absolute where it lies in the job file's folder.

    `python` and `python3` mean the Python that runs mpidata. A name that is no file of the folder is left to PATH.
    """
    first, *rest = program
    if first in ("python", "python3"):
        return (sys.executable, *rest)
    here = folder / first
    if os.path.isfile(here) and ("/" in first or os.access(here, os.X_OK)):
        return (os.path.abspath(here), *rest)
    return tuple(program)


def programs_of(job: Job) -> dict[str, Program]:
    """Program of each role of a job."""
    threads = {}
    if "OMP_NUM_THREADS" not in os.environ:
        busy = 1 + job.trainers.ranks + job.solvers.groups * job.solvers.ranks_per_group  # spares wait
        threads["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // busy))
    if job.solvers.function is not None:
        solver = Program((sys.executable, "-m", "mpidata.solver.function", job.solvers.function), threads)
    else:
        solver = Program(find_program(job.solvers.program or (), job.folder), threads)
    return {
        "scheduler": Program((sys.executable, "-m", "mpidata.scheduler")),
        "trainer": Program(find_program(job.trainers.program, job.folder), threads),
        "solver": solver,
    }
