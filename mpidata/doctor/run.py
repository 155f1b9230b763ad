"""The examination: runs the probes, and passes their results to the checks."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Sequence
from pathlib import Path

from mpidata.checkpoint.memory import available_bytes
from mpidata.config import Job, load_job
from mpidata.doctor import job as jobs
from mpidata.doctor import machine, mpi
from mpidata.doctor.finding import Finding
from mpidata.doctor.nodes import allocation_of, examine_nodes
from mpidata.doctor.probe import ask, ask_ranks, slurm_plugins
from mpidata.errors import LaunchError, LibraryError
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.starting.fault_tolerance import describe_mpi, has_ulfm
from mpidata.launch.starting.mpirun import find_mpirun, mpi_of_mpirun
from mpidata.mpi.mpi_name import MpiName, mpi_of_library
from mpidata.mpi.network import Usage, find_fabrics
from mpidata.native.build_flags import build_facts
from mpidata.run.plan import Plan

__all__ = ["examine"]


def examine(path: str | None = None, overrides: Sequence[str] = ()) -> list[Finding]:
    """Examine this machine, and whether it meets the needs of a job file.

    Parameters
    ----------
    path : str, optional
        The job file.
    overrides : sequence of str
        Keys of the job file to set, `a.b=value`.

    Returns
    -------
    list of Finding
        In the order in which problems should be fixed.

    Raises
    ------
    JobFileError
        The job file has errors.

    Notes
    -----
    Starts processes, each with a time limit. Takes some seconds; at most two minutes if everything hangs.
    """
    job = load_job(path, overrides) if path is not None else None
    try:
        facts = build_facts()
    except LibraryError as error:
        return [Finding("libmpidata", "failed", "not built", str(error))]
    library = mpi_of_library(facts["mpi"])
    found = [Finding("libmpidata", "ok", f"{facts['version']}, built with {library} ({facts['mpicc']})")]
    found += _mpi(library, job)
    if (allocation := allocation_of(job, os.environ)) is not None:
        found += _nodes(allocation, job, library)
    fabrics = find_fabrics()
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    found += [
        machine.slurm(slurm_plugins(), library),
        machine.gpu(ask("gpu")[0]),
        machine.locked_memory(None if soft == resource.RLIM_INFINITY else soft, fabrics),
        machine.shared_memory(_free_shared_memory()),
    ]
    if job is not None:
        plan = Plan.of(job, Path())
        found += [jobs.memory(plan, plan.trainers, available_bytes())]
        found += [jobs.slots(job, plan, len(os.sched_getaffinity(0)), allocation), *jobs.programs(job)]
    return found


def _mpi(library: MpiName, job: Job | None) -> list[Finding]:
    told, said = ask("mpi4py")
    if told is None:
        last = said.strip().splitlines()[-1:] or ["no answer"]
        fix = f"Install mpi4py for {library}: MPICC=... pip install --no-binary mpi4py mpi4py."
        return [Finding("mpi4py", "failed", f"cannot be imported: {last[0]}", fix)]
    mpi4py = mpi_of_library(told["mpi"])
    try:
        mpirun = find_mpirun()
    except LaunchError as error:
        return [mpi.agreement(library, mpi4py, None), Finding("mpirun", "failed", "none of this MPI", str(error))]
    launcher = mpi_of_mpirun(mpirun)
    first = shutil.which("mpirun")
    by_hand = Path(first).absolute() if first else None
    found = [
        mpi.agreement(library, mpi4py, launcher),
        mpi.on_path(by_hand, mpi_of_mpirun(by_hand) if by_hand else None, library, mpirun),
    ]
    can_ft = has_ulfm(describe_mpi(mpirun))
    ft = can_ft and (job is None or job.launch.fault_tolerance is not False)
    result, said = ask_ranks("pair", 2, mpirun, library, ft)
    found.append(mpi.pair(result, said, mpirun))
    if result is None or result["size"] != 2:
        return found
    usage = Usage(tuple(result["devices"]), result["shared_memory"])
    needed = job is not None and job.spawns
    return [
        *found,
        mpi.threads(result["threads"]),
        mpi.ulfm(library, can_ft, shutil.which("srun") is not None),
        mpi.spawn(*ask_ranks("spawn", 1, mpirun, library, ft), needed),
        machine.between_ranks(usage, result),
        machine.between_hosts(usage, find_fabrics(), library, ft),
    ]


def _nodes(allocation: Allocation, job: Job | None, library: MpiName) -> list[Finding]:
    try:
        return examine_nodes(allocation, job, library)
    except LaunchError as error:
        return [Finding("all nodes", "failed", "nothing can be started on them", str(error))]


def _free_shared_memory() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").free
    except OSError:
        return None
