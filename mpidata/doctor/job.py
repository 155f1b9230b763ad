"""Checks of a job file against this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mpidata.checkpoint.memory import check_memory
from mpidata.config import Job
from mpidata.doctor.finding import Finding
from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation
from mpidata.launch.batch.placement import Layout, place
from mpidata.run.plan import Plan

__all__ = ["memory", "programs", "slots"]


def memory(plan: Plan, trainers: int, available: int | None) -> Finding:
    """Compare the buffers of the trainers on this host with its free memory, in bytes."""
    free = "unknown" if available is None else f"{available / 2**30:.1f} GiB free"
    try:
        warnings = check_memory(plan, trainers, available)
    except LaunchError as error:
        return Finding("memory", "failed", free, str(error))
    if warnings:
        return Finding("memory", "warning", free, " ".join(warnings))
    buffers = "the buffer of 1 trainer" if trainers == 1 else f"the buffers of {trainers} trainers"
    return Finding("memory", "ok", f"{free}, enough for {buffers}" if trainers else free)


def slots(job: Job, plan: Plan, cores: int, allocation: Allocation | None) -> Finding:
    """Compare the ranks of the job with the cores of this host, or with the CPUs of the allocation."""
    later = plan.groups * plan.ranks_per_group if plan.start == "spawn" else 0
    later += plan.loaders if plan.loader_start == "spawn" else 0
    ranks = plan.world + later
    if allocation is not None:
        cpus = sum(node.cpus for node in allocation.nodes)
        found = f"{ranks} ranks, {cpus} CPUs on {len(allocation.nodes)} nodes"
        try:
            place(Layout.of(job), allocation)
        except LaunchError as error:
            return Finding("slots", "failed", found, str(error))
        return Finding("slots", "ok", found)
    found = f"{ranks} ranks, {cores} cores on this host"
    if ranks > cores:
        return Finding(
            "slots",
            "warning",
            found,
            f"They share cores, which is fine for a test. To run faster, lower {' or '.join(_numbers_of(job))}.",
        )
    return Finding("slots", "ok", found)


def _numbers_of(job: Job) -> list[str]:
    """Return the keys of the job file that set numbers of ranks."""
    has = {
        "solvers.groups": job.solvers.program is not None or job.solvers.function is not None,
        "loaders.ranks": job.loaders is not None,
        "inference.ranks": job.inference is not None,
        "trainers.ranks": job.trainers.ranks > 1,
    }
    return [key for key, there in has.items() if there] or ["trainers.ranks"]


def programs(job: Job) -> list[Finding]:
    """Check that the programs of the job exist on this host."""
    found = []
    for role, program in (("trainers", job.trainers.program), ("solvers", job.solvers.program)):
        if program is None:
            continue
        name = program[0]
        path = shutil.which(name, path=None if os.sep not in name else "")
        if os.sep in name:
            file = Path(job.folder) / name
            path = str(file) if os.access(file, os.X_OK) and file.is_file() else None
        if path is None:
            fix = f"Build it, or correct '{role}.program'."
            found.append(Finding(f"{role}.program", "failed", f"{name} is not an executable file here", fix))
        else:
            found.append(Finding(f"{role}.program", "ok", path))
    return found
