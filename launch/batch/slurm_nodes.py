"""The nodes of a Slurm job, from its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mpidata.errors import LaunchError
from mpidata.launch.batch.allocation import Allocation, Node

__all__ = ["expand_counts", "expand_names", "read_allocation"]

_PART = re.compile(r"((?:[^,\[\]]|\[[^\]]*\])+)(?:,|$)")
_RANGE = re.compile(r"([^\[\]]*)\[([\d,-]+)\](.*)")
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def read_allocation(environ: Mapping[str, str]) -> Allocation | None:
    """Nodes of the Slurm job that this process belongs to, or None outside a job.

    Parameters
    ----------
    environ : mapping of str to str
        The environment of a batch script or of salloc's shell.

    Raises
    ------
    LaunchError
        Its variables are wrong.
    """
    job = environ.get("SLURM_JOB_ID", "")
    if not job or "SLURM_JOB_NODELIST" not in environ:
        return None
    name = f"Slurm job {job}"
    if "SLURM_HET_SIZE" not in environ:
        return Allocation(name, (_component(environ, ""),), "SLURM_JOB_ID", has_srun=True)
    number = _number(environ, "SLURM_HET_SIZE") or 0
    components = tuple(_component(environ, f"_HET_GROUP_{i}") for i in range(number))
    return Allocation(name, components, "SLURM_JOB_ID", has_srun=True)


def expand_names(text: str) -> list[str]:
    """Expand a list of hosts: `n[1-2,07],m` is n1, n2, n07, m. Raises ValueError if the text is not such a list."""
    names = []
    position = 0
    for part in _PART.finditer(text):
        if part.start() != position:
            break
        position = part.end()
        names += _expand(part[1])
    if position != len(text) or not names:
        raise ValueError(f"{text!r} is not a list of hosts")
    return names


def expand_counts(text: str) -> list[int]:
    """Expand numbers: `2(x3),4` is 2, 2, 2, 4. Raises ValueError if the text is not such a list."""
    counts = []
    for part in text.split(","):
        match = _COUNT.fullmatch(part)
        if match is None:
            raise ValueError(f"{text!r} is not a list of numbers")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _expand(text: str) -> list[str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return [text]
    before, ranges, after = match.groups()
    numbers = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            numbers.append(first)
            continue
        numbers += [str(i).zfill(len(first)) for i in range(int(first), int(last) + 1)]
    return [f"{before}{number}{rest}" for number in numbers for rest in _expand(after)]


def _component(environ: Mapping[str, str], suffix: str) -> tuple[Node, ...]:
    nodes, cpus = f"SLURM_JOB_NODELIST{suffix}", f"SLURM_JOB_CPUS_PER_NODE{suffix}"
    try:
        names, counts = expand_names(environ.get(nodes, "")), expand_counts(environ.get(cpus, ""))
        if len(names) != len(counts):
            raise ValueError(f"{len(names)} nodes, but CPUs for {len(counts)}")
    except ValueError as error:
        raise LaunchError(
            f"Slurm's variables are wrong: {error}. {nodes}={environ.get(nodes)!r}, {cpus}={environ.get(cpus)!r}. "
            "Unset SLURM_JOB_ID to run without Slurm."
        ) from None
    # Known only for the node of the script; the nodes of a component are alike.
    gpus = _number(environ, "SLURM_GPUS_ON_NODE") if suffix in ("", "_HET_GROUP_0") else None
    return tuple(Node(name, count, gpus) for name, count in zip(names, counts, strict=True))


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name)
    return int(value) if value is not None and value.isdecimal() else None
