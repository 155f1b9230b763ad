"""`mpidata submit JOB`: submit a job to the batch system that its job file describes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpidata.config import Job, load_job
from mpidata.errors import LaunchError
from mpidata.launch.batch.system import system_of

__all__ = ["batch_script", "submit"]


def batch_script(job: Job, overrides: Sequence[str] = (), template: str | None = None) -> str:
    """Return the batch script of a job, see `BatchSystem.script`."""
    return system_of(job).script(job, overrides, template)


def submit(path: str, overrides: Sequence[str], template: str | None = None) -> tuple[str, Job, Path]:
    """Submit a job to its batch system.

    Parameters
    ----------
    path : str
        The job file.
    overrides : sequence of str
        Keys to set, `a.b=value`.
    template : str, optional
        A template to use instead of that of the job file.

    Returns
    -------
    number : str
        Its number there, followed by `;` and the cluster's name if sbatch printed one.
    job : Job
        What was submitted.
    output : Path
        Where the script's output goes.

    Raises
    ------
    MpidataError
        The job file or the template is invalid, or the batch system refuses the job.
    """
    job = load_job(path, overrides)
    script = batch_script(job, overrides, template)
    _check_writable(job)
    number, output = system_of(job).submit(job, script)
    return number, job, output


def _check_writable(job: Job) -> None:
    """Check that the run folder and the script's output can be written, before the job waits in the queue."""
    output = Path(os.path.abspath(job.folder / job.output)) / job.name
    for folder, fix in ((output, "key 'output'. Name a folder that can be written"), (job.folder, "key 'folder'")):
        there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise LaunchError(
                f"Cannot write into {there}: {error.strerror}. The job would write {folder}/. {job.path}: {fix}."
            ) from None
