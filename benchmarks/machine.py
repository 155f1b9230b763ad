"""Describes the machine on which the figures were measured, without its name."""

from __future__ import annotations

import contextlib
import os
import subprocess
from importlib import metadata
from pathlib import Path

from benchmarks.contender import peer_python
from mpidata.errors import LaunchError
from mpidata.launch.starting.mpirun import find_mpirun

__all__ = ["describe"]

_OWN = ["mpidata", "torch", "numpy"]
_PEERS = ["pyzmq", "adios2", "rpcdataloader", "redis", "hiredis", "h5py", "torch", "numpy"]
_ASK = """
import sys
from importlib import metadata
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def describe() -> dict[str, str]:
    """Return the machine's cores, memory, MPI, versions and load."""
    found = {
        "cores": f"{len(os.sched_getaffinity(0))}, {_after('/proc/cpuinfo', 'model name')}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "load before": ", ".join(f"{load:.1f}" for load in os.getloadavg()),
        "MPI": _mpi(),
        "mpidata": ", ".join(f"{name} {metadata.version(name)}" for name in _OWN),
        "peers": ", ".join(_output([peer_python(), "-c", _ASK, *_PEERS]).splitlines()),
    }
    server = _output(["redis-server", "--version"]).split()
    if server:
        found["redis-server"] = server[2].removeprefix("v=")
    return found


def _mpi() -> str:
    with contextlib.suppress(LaunchError):
        return (
            next(iter(_output([str(find_mpirun()), "--version"]).splitlines()), "")
            .removeprefix("mpirun (")
            .replace(")", "")
        )
    return "none"


def _after(path: str, key: str) -> str:
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return "unknown processor"


def _output(command: list[str]) -> str:
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    return ""
