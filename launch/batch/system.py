"""Batch systems: the interface that a job needs, and the known systems.

To add one, add a file beside slurm.py and an entry in `SYSTEMS`, and its keys of the job file in a file beside
mpidata/config/launching.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from mpidata.config import Job
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.slurm import Slurm
from mpidata.run.folder import RunFolder

__all__ = ["SYSTEMS", "BatchJob", "BatchSystem", "batch_job", "batch_variables", "read_allocation", "system_of"]


class BatchJob(Protocol):
    """A job of a batch system, as one of its processes sees it."""

    def note(self, run: RunFolder, checkpoint: int | None) -> None:
        """Note in the run folder that the job has started the run from this checkpoint; raises LaunchError."""

    def check_progress(self, run: RunFolder, checkpoint: int) -> None:
        """Raise LaunchError if the job was requeued repeatedly without a new checkpoint."""

    def is_ending(self) -> str | None:
        """Ask whether the batch system is ending the job; returns how, in words, else None."""


class BatchSystem(Protocol):
    """A batch system."""

    def allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """Nodes of the job that this process belongs to, None outside a job; raises LaunchError."""

    def job(self, environ: Mapping[str, str]) -> BatchJob | None:
        """Job that this process belongs to, None outside a job."""

    def variables(
        self, environ: Mapping[str, str], allocation: Allocation | None, srun: bool, beside: bool
    ) -> dict[str, str]:
        """Variables that mpirun or srun needs there; `beside`: to start something beside what already runs."""

    def script(self, job: Job, overrides: Sequence[str], template: str | None) -> str:
        """Return a batch script that runs a job; raises LaunchError if the template cannot be used."""

    def submit(self, job: Job, script: str) -> tuple[str, Path]:
        """Submit it; returns its number and the path of its output, raises LaunchError if it is refused."""


SYSTEMS: tuple[BatchSystem, ...] = (Slurm(),)
"""The known batch systems, in the order in which they are asked."""


def read_allocation(environ: Mapping[str, str]) -> Allocation | None:
    """Nodes of the batch job that this process belongs to, or None outside a job.

    Parameters
    ----------
    environ : mapping of str to str
        The environment of a batch script or of an allocation's shell.

    Raises
    ------
    LaunchError
        Its variables are wrong.
    """
    found = (system.allocation(environ) for system in SYSTEMS)
    return next((allocation for allocation in found if allocation is not None), None)


def batch_job(environ: Mapping[str, str]) -> BatchJob | None:
    """Batch job that this process belongs to, or None outside a job."""
    found = (system.job(environ) for system in SYSTEMS)
    return next((job for job in found if job is not None), None)


def batch_variables(
    environ: Mapping[str, str], allocation: Allocation | None = None, srun: bool = False, beside: bool = False
) -> dict[str, str]:
    """Variables that a launcher needs besides the environment, in any batch system."""
    return {
        name: value for system in SYSTEMS for name, value in system.variables(environ, allocation, srun, beside).items()
    }


def system_of(job: Job) -> BatchSystem:
    """Batch system that a job file describes; Slurm (section `slurm`) is the only one so far."""
    return SYSTEMS[0]
