"""Checks of the machine: transports, Slurm, GPUs, limits, memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mpidata.doctor.finding import Finding
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName
from mpidata.mpi.network import Fabric, Usage

__all__ = ["between_hosts", "between_ranks", "gpu", "locked_memory", "shared_memory", "slurm"]

_GIB = 2**30


def between_ranks(usage: Usage, figures: Mapping[str, Any]) -> Finding:
    """Judge how two ranks on this host communicate."""
    speed = f"{figures['mb_per_s']:.0f} MB/s in messages of 1 MB, {figures['us']:.1f} us one way"
    if usage.shared_memory:
        return Finding("on one host", "ok", f"shared memory: {speed}")
    fix = (
        "Remove settings that disable shared memory (OMPI_MCA_btl, UCX_TLS, MPICH_...), and check the room in /dev/shm."
    )
    return Finding("on one host", "warning", f"{usage}, no shared memory: {speed}", fix)


def between_hosts(usage: Usage, fabrics: Sequence[Fabric], mpi: MpiName, with_ulfm: bool) -> Finding:
    """Judge how ranks on different hosts would communicate."""
    active = [fabric.name for fabric in fabrics if fabric.active]
    if usage.devices:
        return Finding("between hosts", "ok", f"{', '.join(active) or 'the fabric'} through {', '.join(usage.devices)}")
    if active:
        fix = f"{mpi} does not use {', '.join(active)}. See docs/fabric.md."
        if with_ulfm and mpi.name == OPEN_MPI:
            fix += " With `launch: {fault_tolerance: false}` Open MPI can use UCX, but the job ends when a rank dies."
        return Finding("between hosts", "warning", "TCP", fix)
    if fabrics:
        names = ", ".join(fabric.name for fabric in fabrics)
        return Finding(
            "between hosts", "warning", f"TCP: {names} has no link", "Check the cable and the subnet manager."
        )
    return Finding("between hosts", "warning", "TCP: this host has no InfiniBand, RoCE, Slingshot or Omni-Path")


def slurm(plugins: str | None, mpi: MpiName) -> Finding:
    """Judge the output of `srun --mpi=list`; None: there is no srun."""
    if plugins is None:
        return Finding("Slurm", "absent", "no srun on this machine")
    if re.search(r"^srun: (error|fatal)", plugins, re.MULTILINE):
        return Finding("Slurm", "absent", f"no cluster: {plugins.strip().splitlines()[-1]}")
    names = sorted(set(re.findall(r"\b(cray_shasta|none|openmpi|pmi2|pmix)(?:_v\d+)?\b", plugins)) - {"none"})
    listed = f"srun --mpi: {', '.join(names) or 'none'}"
    wanted = "pmix" if mpi.name == OPEN_MPI else "cray_shasta" if mpi.name.startswith("Cray") else "pmi2"
    if wanted in names:
        return Finding("Slurm", "ok", f"{listed}; {mpi} needs {wanted}")
    fix = f"`srun` cannot start jobs of {mpi}, which needs --mpi={wanted}: use its mpirun within the allocation."
    return Finding("Slurm", "warning", listed, fix)


def gpu(result: Mapping[str, Any] | None, wanted: bool = False) -> Finding:
    """Judge the report of a process that loads torch; None: there was no report."""
    if result is None:
        return Finding(
            "GPU", "failed", "a process that imports torch does not end normally", "Try `python -c 'import torch'`."
        )
    if result.get("error"):
        fix = "Check the driver with nvidia-smi, and that torch is built for it."
        return Finding("GPU", "failed", f"pinned memory cannot be allocated: {result['error']}", fix)
    if result["gpus"]:
        return Finding("GPU", "ok", f"{', '.join(result['gpus'])}; pinned memory works")
    if wanted or result.get("driver"):
        fix = "Install a torch that is built for CUDA or ROCm, and check the driver with nvidia-smi."
        return Finding("GPU", "warning", f"torch {result['torch']} sees no GPU, although the machine has one", fix)
    return Finding("GPU", "absent", f"none; torch {result['torch']}")


def locked_memory(limit: int | None, fabrics: Sequence[Fabric]) -> Finding:
    """Judge `ulimit -l` in bytes; None: unlimited."""
    text = "unlimited" if limit is None else f"{limit / 2**20:.0f} MiB"
    if limit is None or not fabrics or limit >= 16 * _GIB:
        return Finding("locked memory", "ok", text)
    fix = (
        "The fabric locks the memory of messages. Set `* - memlock unlimited` in /etc/security/limits.conf, "
        "and under Slurm LimitMEMLOCK=infinity for slurmd."
    )
    return Finding("locked memory", "warning", text, fix)


def shared_memory(free: int | None) -> Finding:
    """Judge the room in /dev/shm, in bytes; None: it does not exist."""
    if free is None:
        return Finding(
            "/dev/shm", "warning", "missing", "Mount a tmpfs there: ranks on a host share memory through it."
        )
    text = f"{free / _GIB:.1f} GiB free"
    if free < _GIB // 4:
        return Finding(
            "/dev/shm", "warning", text, "Make it larger (docker: --shm-size=2g): MPI needs some MiB per rank."
        )
    return Finding("/dev/shm", "ok", text)
