"""Slurm's launcher, srun: when it is used, and its commands."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["PLUGINS", "find_srun", "srun_command", "srun_for", "srun_on_each", "srun_on_one", "uses_srun"]

PLUGINS = {"Open MPI": "pmix", "MPICH": "pmi2", "MVAPICH": "pmi2", "Intel MPI": "pmi2", "Cray MPICH": "cray_shasta"}
"""Slurm's plugin for each MPI."""


def uses_srun(wanted: str, allocation: Allocation, mpi: MpiName) -> bool:
    """Whether srun, not mpirun, starts the ranks if `launch.with` is `wanted`."""
    if not allocation.has_srun:
        return False
    return wanted == "srun" or len(allocation.components) > 1 or (wanted == "auto" and mpi.name != OPEN_MPI)


def srun_for(job: Job, allocation: Allocation | None, mpi: MpiName, environ: Mapping[str, str]) -> Path | None:
    """Find the srun that starts the ranks of a job; None if mpirun starts them.

    Raises
    ------
    LaunchError
        What the job file requests is not available.
    """
    wanted = job.launch.with_
    if allocation is None:
        if wanted == "srun":
            raise LaunchError(
                "'launch.with' is 'srun', but this is not a Slurm allocation: SLURM_JOB_ID is not set. Use "
                "`mpidata submit` or salloc, or set it to auto."
            )
        return None
    if wanted == "mpirun" and len(allocation.components) > 1:
        raise LaunchError(
            f"'launch.with' is 'mpirun', which cannot use all components of a heterogeneous job ({allocation.job}). "
            "Set it to auto, or use a homogeneous job."
        )
    if not uses_srun(wanted, allocation, mpi):
        return None
    if mpi.name == OPEN_MPI and job.spawns:
        what = ("solvers", "groups") if job.solvers.start == "spawn" else ("loaders", "loaders")
        raise LaunchError(
            f"'{what[0]}.start' is 'spawn', but Open MPI cannot start {what[1]} later under srun ({allocation.job}). "
            "Use 'start: split', or a homogeneous job with 'launch.with: mpirun'."
        )
    return find_srun(environ)


def find_srun(environ: Mapping[str, str]) -> Path:
    """Find srun on PATH; raises LaunchError."""
    found = shutil.which("srun", path=environ.get("PATH"))
    if found is None:
        raise LaunchError("There is no srun on PATH, though this is a Slurm allocation. Add its folder to PATH.")
    return Path(found)


def srun_command(
    srun: Path, shim: Path, plan: Plan, components: tuple[int, ...], plugin: str | None, options: list[str]
) -> list[str]:
    """Return the command that starts all ranks of a plan with srun.

    Parameters
    ----------
    srun, shim : Path
        Its path, and that of mpidata-rank.
    plan : Plan
        Of the job.
    components : tuple of int
        Number of ranks in each component of a heterogeneous job; one number otherwise.
    plugin : str or None
        Slurm's plugin for the MPI; None: Slurm's default.
    options : list of str
        Further options.
    """
    # Not bound: a trainer's receive thread must not share the core of its loop. The death of one rank ends all, or the
    # others would wait for it.
    common = ["--distribution=arbitrary", "--overcommit", "--cpu-bind=none", "--kill-on-bad-exit=1", *options]
    command = [str(srun), *([f"--mpi={plugin}"] if plugin else [])]
    run = RunFolder(plan.run)
    if len(components) == 1:
        return [*command, "-n", str(plan.world), f"--nodelist={run.hosts}", *common, str(shim), str(run.path)]
    for number, ranks in enumerate(components):
        command += [] if number == 0 else [":"]
        command += [f"--het-group={number}", "-n", str(ranks), f"--nodelist={run.hosts_of(number)}"]
        command += [*common, str(shim), str(run.path)]
    return command


def srun_on_one(srun: Path, allocation: Allocation, host: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs another one on one host, beside what already runs there."""
    components = allocation.components
    number = next((i for i, nodes in enumerate(components) if any(node.name == host for node in nodes)), 0)
    group = [f"--het-group={number}"] if len(components) > 1 else []
    return [str(srun), *group, "-N1", "-n1", f"--nodelist={host}", "--overlap", *command]


def srun_on_each(srun: Path, mpi: MpiName, allocation: Allocation, command: Sequence[str]) -> list[str]:
    """Return a command that runs another one as an MPI job with one rank per host, in srun's own order."""
    plugin = [f"--mpi={PLUGINS[mpi.name]}"] if mpi.name in PLUGINS else []
    line = [str(srun), *plugin]
    for number, nodes in enumerate(allocation.components):
        line += [":"] if number else []
        line += [f"--het-group={number}"] if len(allocation.components) > 1 else []
        line += [f"-N{len(nodes)}", f"-n{len(nodes)}", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none", *command]
    return line
