"""What the ranks of each role run."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["Program", "programs_of"]


@dataclasses.dataclass(frozen=True)
class Program:
    """What a rank runs: the arguments, executable first, and the environment variables it is given besides its own."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def programs_of(job: Job) -> dict[str, Program]:
    """Program of each role of a job."""
    from mpidata.config.programs import find_program  # loads pydantic, which a rank that only joins never needs

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
