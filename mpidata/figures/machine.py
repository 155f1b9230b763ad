"""The machine of a run: host, processor, memory, GPUs, MPI and versions, for a file in the run folder."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mpidata.mpi.mpi_name import MpiName
from mpidata.native.linked_mpi import linked_mpi

__all__ = ["describe_machine"]

_PACKAGES = ("mpidata", "torch", "numpy", "mpi4py", "h5py", "pyarrow")


def describe_machine(mpi: MpiName | None = None, proc: Path = Path("/proc")) -> dict[str, object]:
    """Describe the host of this process and the installed packages, without importing them.

    Parameters
    ----------
    mpi : MpiName, optional
        The MPI that runs the job; the default is the one that mpidata was built with.
    """
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "processor": _first(proc / "cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": [name for path in _gpus(proc) if (name := _first(path, "Model"))],
        "mpi": str(mpi or linked_mpi() or "unknown"),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _gpus(proc: Path) -> list[Path]:
    return sorted((proc / "driver" / "nvidia" / "gpus").glob("*/information"))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _first(path: Path, key: str) -> str | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in found if name.strip() == key), None)
