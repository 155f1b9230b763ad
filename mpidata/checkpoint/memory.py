"""Whether the memory that the buffers, and checkpoints of them, need is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mpidata.errors import LaunchError, LibraryError
from mpidata.native.loading import load_carried
from mpidata.run.plan import Plan

__all__ = ["available_bytes", "check_memory", "sample_bytes"]

_LINE = 64  # c_api/src/buffer/slots.c aligns to it
_SLOT = 128  # what the library keeps of each sample besides


def sample_bytes(plan: Plan) -> int:
    """Memory of one sample on a trainer, in bytes; what grows with lengths that samples have for themselves, of 1."""
    fields = sum(_aligned(field.nbytes) for field in plan.fields)
    return fields + _aligned(8 * len(plan.parameters)) + _LINE + _SLOT


def available_bytes(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup"), environ: Mapping[str, str] | None = None
) -> int | None:
    """Memory that a new program can get on this host, in bytes; None where that cannot be found out.

    The free memory of the machine, what the control groups of this process (of version 1 or 2) are still allowed, or
    what the Slurm job was given of the host (`--mem`, `--mem-per-cpu`), whichever is least.
    """
    found = _granted(os.environ if environ is None else environ)
    try:
        here = load_carried().mpidata_available_memory(os.fsencode(proc), os.fsencode(cgroup), None)
    except (LibraryError, OSError):  # a job says so, and the doctor, when they load libmpidata
        here = -1
    return min([*found, here] if here >= 0 else found, default=None)


def _granted(environ: Mapping[str, str]) -> list[int]:
    """Read what Slurm has given to the job on this host, in bytes; 0 of `--mem` is all there is."""
    node, cpu, cpus = (environ.get(f"SLURM_{n}", "") for n in ("MEM_PER_NODE", "MEM_PER_CPU", "CPUS_ON_NODE"))
    if node.isdecimal() and int(node):
        return [int(node) * 2**20]
    return [int(cpu) * int(cpus) * 2**20] if cpu.isdecimal() and int(cpu) and cpus.isdecimal() else []


def check_memory(plan: Plan, trainers: int, available: int | None) -> list[str]:
    """Compare the memory of the trainers' buffers with what a host has.

    Parameters
    ----------
    plan : Plan
        Of the job.
    trainers : int
        Number of trainers on the host.
    available : int or None
        Its free memory in bytes, as `available_bytes` finds it; None: nothing is checked.

    Returns
    -------
    list of str
        Sentences to warn with: the buffers fit, but not twice, as a checkpoint may need.

    Raises
    ------
    LaunchError
        The buffers do not fit.

    Notes
    -----
    The validation samples are not counted, as the number of their steps is not known.
    """
    if available is None:
        return []
    buffers = trainers * plan.capacity * (1 if plan.capacity_in_bytes else sample_bytes(plan))
    of = _size(plan.capacity) if plan.capacity_in_bytes else f"{plan.capacity} samples"
    what = f"{_size(buffers)} for {'one buffer' if trainers == 1 else f'{trainers} buffers'} of {of}"
    if buffers > available:
        raise LaunchError(
            f"The buffers do not fit into memory: {what}, and {_size(available)} can be had on this host, of "
            "what is free there and what Slurm (--mem) and control groups allow. Key 'buffer.capacity'. Lower it, use "
            "more hosts, or ask for more memory."
        )
    if plan.checkpoint_every_s and 2 * buffers > available:
        return [
            f"While a checkpoint is written, up to {_size(2 * buffers)} may be needed ({what}, and as much for what "
            f"arrives meanwhile), but {_size(available)} can be had on this host. Lower buffer.capacity to be safe."
        ]
    return []


def _aligned(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
