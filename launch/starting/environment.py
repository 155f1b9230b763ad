"""What the launcher's environment variables say about this process before MPI is initialised."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Mapping, MutableMapping

from mpidata.errors import LaunchError

__all__ = ["Place", "find_place", "is_shell_of_srun", "leave_step"]

# Variables of unknown launchers: if such a process were taken for a single one, each rank would start a job.
_OTHER_RANKS = (
    "FLUX_TASK_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",
    "MPIRUN_RANK",
)
# Variables that srun sets for the step of an interactive shell: launchers would take them for their own, or as options.
_OF_STEP = (
    *("SLURM_STEP", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_PTY_"),
    *("SLURM_SRUN_", "SLURM_LAUNCH_NODE_", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_NTASKS", "SLURM_NPROCS"),
    *("SLURM_MPI_TYPE", "SLURM_PMI", "PMIX_", "PMI_"),
)
_NO_STEPS = ("4294967290", "4294967291", "4294967292")  # salloc's shell, a batch script, a program beside the job


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of this process among those that the launcher started.

    Parameters
    ----------
    rank : int
        From 0.
    size : int or None
        Number of ranks according to the launcher; None if unknown.
    job : str
        Name of the launcher's job: the same on all its ranks; an earlier job may have had the same name.
    """

    rank: int
    size: int | None
    job: str


def find_place(environ: Mapping[str, str]) -> Place | None:
    """Return the place of this process, or None if no launcher started it.

    Parameters
    ----------
    environ : mapping of str to str
        The environment, for example `os.environ`.

    Raises
    ------
    LaunchError
        An unknown launcher started it, or its variables are wrong.

    Notes
    -----
    The shim `mpidata-rank` reads the same variables in the same order.
    """
    if is_shell_of_srun(environ):
        return None
    step = environ.get("SLURM_STEP_ID")  # a batch script also has SLURM_PROCID, but is not in a step
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


def is_shell_of_srun(environ: Mapping[str, str]) -> bool:
    """Whether this process was started in the interactive shell of `srun --pty bash`, which is a step of its own.

    Such a step usually has one task. If it has more, only the first has the terminal, and the others have ended.
    """
    step, tasks = environ.get("SLURM_STEP_ID"), environ.get("SLURM_STEP_NUM_TASKS")
    if "SLURM_PTY_PORT" not in environ or step is None or environ.get("PMI_SIZE", tasks) != tasks:
        return False
    if "OMPI_COMM_WORLD_RANK" in environ or step in _NO_STEPS:  # started there by mpirun, or not such a shell
        return False
    is_task = environ.get("SLURM_TASK_PID") == str(os.getpid())
    return tasks == "1" or (environ.get("SLURM_PROCID") == "0" and not is_task and os.isatty(0))


def leave_step(environ: MutableMapping[str, str]) -> None:
    """In the shell of `srun --pty`, change the environment to that of a shell of salloc.

    Parameters
    ----------
    environ : mutable mapping of str to str
        `os.environ`. Variables of the step, and of the MPI that it was made for, are removed. Programs that launchers
        start with srun may share the resources of the step.
    """
    if is_shell_of_srun(environ):
        for name in [name for name in environ if name.startswith(_OF_STEP) and not name.startswith("PMIX_MCA_")]:
            del environ[name]
        environ["SLURM_OVERLAP"] = "1"


def _place(environ: Mapping[str, str], rank: str, size: str | None, job: str) -> Place:
    values = [environ.get(name) if name else None for name in (rank, size)]
    if values[0] is None or any(value is not None and not value.isdecimal() for value in values):
        raise LaunchError(f"The launcher set {rank}={values[0]!r} and {size}={values[1]!r}. Use mpirun or srun.")
    return Place(int(values[0]), None if values[1] is None else int(values[1]), "".join(map(_safe, job)))


def _parent() -> str:
    return f"{socket.gethostname()}-{os.getppid()}"


def _safe(character: str) -> str:
    return character if character.isalnum() or character in "-.@" else "_"
