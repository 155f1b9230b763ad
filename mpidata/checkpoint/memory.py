"""Check that there is memory for the buffers and for checkpoints of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mpidata.errors import LaunchError, LibraryError
from mpidata.native.loading import load_carried
from mpidata.run.plan import Plan

__all__ = ["available_bytes", "check_memory", "sample_bytes"]

_LINE = 64  # c_api/src/buffer/slots.c aligns to it
_SLOT = 128  # additional memory of the library for each sample


def sample_bytes(plan: Plan) -> int:
    """Memory of one sample on a trainer, in bytes; lengths that differ between samples count as 1."""
    fields = sum(_aligned(field.nbytes) for field in plan.fields)
    return fields + _aligned(8 * len(plan.parameters)) + _LINE + _SLOT


def available_bytes(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup"), environ: Mapping[str, str] | None = None
) -> int | None:
    """Memory that a new program can get on this host, in bytes; None if that is unknown.

    The smallest of: the free memory of the machine, the rest of the limit of this process's control groups (version 1
    or 2), and the memory of the Slurm job on the host (`--mem`, `--mem-per-cpu`).
    """
    found = _granted(os.environ if environ is None else environ)
    try:
        here = load_carried().mpidata_available_memory(os.fsencode(proc), os.fsencode(cgroup), None)
    except (LibraryError, OSError):  # a job and the doctor report this when they load libmpidata
        here = -1
    return min([*found, here] if here >= 0 else found, default=None)


def _granted(environ: Mapping[str, str]) -> list[int]:
    """Return the memory of the Slurm job on this host, in bytes; none for `--mem=0`, which is all memory."""
    node, cpu, cpus = (environ.get(f"SLURM_{n}", "") for n in ("MEM_PER_NODE", "MEM_PER_CPU", "CPUS_ON_NODE"))
    if node.isdecimal() and int(node):
        return [int(node) * 2**20]
    return [int(cpu) * int(cpus) * 2**20] if cpu.isdecimal() and int(cpu) and cpus.isdecimal() else []


def check_memory(plan: Plan, trainers: int, available: int | None) -> list[str]:
    """Compare the memory of the trainers' buffers with that of a host.

    Parameters
    ----------
    plan : Plan
        Of the job.
    trainers : int
        Number of trainers on the host.
    available : int or None
        Free memory of the host in bytes, from `available_bytes`; None: nothing is checked.

    Returns
    -------
    list of str
        Warnings that the buffers fit, but not twice, as a checkpoint may need.

    Raises
    ------
    LaunchError
        The buffers do not fit.

    Notes
    -----
    Validation samples are not counted, because the number of their steps is unknown.
    """
    if available is None:
        return []
    buffers = trainers * plan.capacity * (1 if plan.capacity_in_bytes else sample_bytes(plan))
    of = _size(plan.capacity) if plan.capacity_in_bytes else f"{plan.capacity} samples"
    what = f"{_size(buffers)} for {'one buffer' if trainers == 1 else f'{trainers} buffers'} of {of}"
    if buffers > available:
        raise LaunchError(
            f"The buffers do not fit into memory: they need {what}, but {_size(available)} is available on this host "
            "within its free memory and the limits of Slurm (--mem) and control groups. Lower 'buffer.capacity', use "
            "more hosts, or request more memory."
        )
    if plan.checkpoint_every_s and 2 * buffers > available:
        return [
            f"While a checkpoint is written, up to {_size(2 * buffers)} may be needed ({what}, and as much for samples "
            f"that arrive meanwhile), but {_size(available)} is available on this host. Lower 'buffer.capacity'."
        ]
    return []


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
