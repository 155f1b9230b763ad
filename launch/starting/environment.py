"""What the launcher says, in the environment, about this process before MPI is initialised."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Mapping

from mpidata.errors import LaunchError

__all__ = ["Place", "find_place"]

# Launchers that give a rank under other names; taking such a process for a single one would start a job on each rank.
_OTHER_RANKS = (
    "FLUX_TASK_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",
    "MPIRUN_RANK",
)
_NO_STEPS = ("4294967290", "4294967291", "4294967292")  # salloc's shell, a batch script, what is beside the job


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of this process in what the launcher started.

    Parameters
    ----------
    rank : int
        From 0.
    size : int or None
        Number of ranks the launcher promises; None where it does not say.
    job : str
        Name of the launcher's job: the same on all its ranks; an earlier job may have had it too.
    """

    rank: int
    size: int | None
    job: str


def find_place(environ: Mapping[str, str]) -> Place | None:
    """Place of this process, or None if no launcher started it.

    Parameters
    ----------
    environ : mapping of str to str
        The environment, `os.environ` say.

    Raises
    ------
    LaunchError
        A launcher started it that is not known here, or its variables make no sense.

    Notes
    -----
    The shim `mpidata-rank` reads the same variables in the same order.
    """
    step = environ.get("SLURM_STEP_ID")  # a batch script has SLURM_PROCID too, but is in no step
    if step in _NO_STEPS:
        step = None
    slurm = f"slurm-{environ.get('SLURM_JOB_ID', '')}.{step}"
    if "OMPI_COMM_WORLD_RANK" in environ:
        job = environ.get("PMIX_NAMESPACE") or _parent()
        return _place(environ, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", job)
    if "PMIX_RANK" in environ:
        job = environ.get("PMIX_NAMESPACE") or _parent()
        size = "SLURM_STEP_NUM_TASKS" if step is not None and job.startswith("slurm.") else None
        return _place(environ, "PMIX_RANK", size, job)
    if "PMI_RANK" in environ:
        job = slurm if step is not None else environ.get("PMI_JOBID") or _parent()
        return _place(environ, "PMI_RANK", "PMI_SIZE", job)
    if step is not None and "SLURM_PROCID" in environ:
        return _place(environ, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", slurm)
    for name in _OTHER_RANKS:
        if name in environ:
            raise LaunchError(
                f"A launcher that mpidata does not know started this process ({name}={environ[name]}). "
                "Use the mpirun of the MPI that mpidata is built with, or srun."
            )
    return None


def _place(environ: Mapping[str, str], rank: str, size: str | None, job: str) -> Place:
    values = [environ.get(name) if name else None for name in (rank, size)]
    if values[0] is None or any(value is not None and not value.isdecimal() for value in values):
        raise LaunchError(f"The launcher gave {rank}={values[0]!r} and {size}={values[1]!r}. Use mpirun or srun.")
    return Place(int(values[0]), None if values[1] is None else int(values[1]), "".join(map(_safe, job)))


def _parent() -> str:
    return f"{socket.gethostname()}-{os.getppid()}"


def _safe(character: str) -> str:
    return character if character.isalnum() or character in "-.@" else "_"
