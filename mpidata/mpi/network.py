"""The network adapters of a host, read from /sys, and those that the MPI of a process uses, from its open files.

The transports of every MPI open their devices when MPI is initialized: InfiniBand, RoCE, EFA and Omni-Path a file of
/dev/infiniband or /dev/hfi1, Slingshot one of /dev/cxi. They map shared memory.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

from mpidata.mpi.mpi_name import OPEN_MPI, MpiName

__all__ = ["Fabric", "Usage", "find_fabrics", "look_at_process", "slower_than_it_could_be"]

_DEVICE = re.compile(r"^/dev/(infiniband/|cxi\d|hfi1)")
_SHARED = re.compile(r"sm_segment|vader_segment|mpich|ucx_shm|^/SYSV|psm|Intel_MPI|cray")
_PAGE = "See docs/fabric.md."


@dataclasses.dataclass(frozen=True)
class Fabric:
    """A network adapter that moves data without the kernel's TCP.

    Parameters
    ----------
    name : str
        For example `InfiniBand mlx5_0 (100 Gb/sec (4X EDR))`.
    active : bool
        Whether one of its ports has a link.
    """

    name: str
    active: bool = True


@dataclasses.dataclass(frozen=True)
class Usage:
    """The transports that a process uses.

    Parameters
    ----------
    devices : tuple of str
        Open device files of network adapters.
    shared_memory : bool
        Whether it shares memory with others.
    """

    devices: tuple[str, ...] = ()
    shared_memory: bool = False

    def __str__(self) -> str:
        """Return the transports, separated by commas."""
        ways = [*(["shared memory"] if self.shared_memory else []), *self.devices]
        return ", ".join(ways) or "TCP"


def find_fabrics(sys: Path = Path("/sys")) -> list[Fabric]:
    """Find the network adapters of this host, in the order of their names."""
    found = [_infiniband(adapter) for adapter in _entries(sys / "class" / "infiniband")]
    found += [Fabric(f"Slingshot {adapter.name}") for adapter in _entries(sys / "class" / "cxi")]
    return found


def look_at_process(proc: Path = Path("/proc/self")) -> Usage:
    """Return the transports of a process whose MPI is initialized."""
    devices = set()
    for entry in _entries(proc / "fd"):
        try:
            target = os.readlink(entry)
        except OSError:  # closed meanwhile
            continue
        if _DEVICE.match(target):
            devices.add(target)
    maps = [line.split(maxsplit=5) for line in _text(proc / "maps").splitlines()]
    shared = any(len(words) == 6 and "s" in words[1] and _SHARED.search(words[5]) for words in maps)
    return Usage(tuple(sorted(devices)), shared)


def slower_than_it_could_be(
    usage: Usage, fabrics: list[Fabric], one_host: bool, spawned: bool, mpi: MpiName
) -> list[str]:
    """Return a sentence for each case in which processes of a job use a slower transport than the hardware offers.

    Parameters
    ----------
    usage : Usage
        Transports of one of the ranks.
    fabrics : list of Fabric
        Network adapters of its host.
    one_host : bool
        Whether all ranks of the job's world are on that host.
    spawned : bool
        Whether solver groups are spawned.
    mpi : MpiName
        The MPI of the job.

    Returns
    -------
    list of str
        The sentences; empty if no case applies.
    """
    sentences = []
    active = [fabric.name for fabric in fabrics if fabric.active]
    if not one_host and active and not usage.devices:
        sentences.append(
            f"Ranks on different hosts use TCP, although this host has {', '.join(active)}, which {mpi} does not "
            f"use. {_PAGE}"
        )
    if one_host and not usage.shared_memory:
        sentences.append(
            f"Ranks on this host do not share memory: {mpi} sends their data over {usage}, which is slower. Check the "
            f"settings of MPI in the environment, and the free space in /dev/shm. {_PAGE}"
        )
    if spawned and mpi.name == OPEN_MPI and not usage.devices:
        sentences.append(
            f"Spawned groups use TCP, also on one host, because {mpi} shares memory only among ranks that start "
            f"together. This is about a quarter of the speed of `start: split`. {_PAGE}"
        )
    return sentences


def _infiniband(adapter: Path) -> Fabric:
    ports = _entries(adapter / "ports")
    states = [_text(port / "state") for port in ports]
    layers = {_text(port / "link_layer").strip() for port in ports}
    rates = [_text(port / "rate").strip() for port, state in zip(ports, states, strict=True) if "ACTIVE" in state]
    kind = "InfiniBand"
    if adapter.name.startswith("hfi1"):
        kind = "Omni-Path"
    elif adapter.name.startswith("efa"):
        kind = "EFA"
    elif layers == {"Ethernet"}:
        kind = "RoCE"
    return Fabric(f"{kind} {adapter.name}{f' ({rates[0]})' if rates and rates[0] else ''}", bool(rates))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
