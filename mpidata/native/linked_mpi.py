"""The MPIs of libmpidata and of mpi4py, which must be the same."""

from __future__ import annotations

from pathlib import Path

from mpidata.errors import LibraryError
from mpidata.mpi.mpi_name import MpiName, mpi_of_library
from mpidata.native.build_flags import build_facts
from mpidata.native.installation import folders, read_facts

__all__ = ["INSTALL_ANEW", "linked_mpi", "mpi_of_mpi4py", "mpi_of_build"]

INSTALL_ANEW = (
    "MPICC=<its mpicc> pip install --no-cache-dir --force-reinstall --no-deps --no-binary mpidata mpidata` (with `.` "
    "for the last word in its source folder; pip's cache may hold a wheel for another MPI)"
)
"""The command to install mpidata for another MPI, after a backquote: a wheel's name does not contain its MPI."""


def linked_mpi() -> MpiName | None:
    """Return the name of the MPI that mpidata was built with; None if mpidata was not built."""
    try:
        return mpi_of_library(build_facts()["mpi"])
    except (LibraryError, KeyError):
        return None


def mpi_of_build(library: Path) -> MpiName:
    """Return the name of the MPI that a libmpidata.so was built with, from the facts that are installed with it."""
    try:
        of_package = folders()
        share = of_package.share if of_package.lib == library.parent else library.parents[1] / "share" / "mpidata"
        return mpi_of_library(read_facts(share / "build.json")["mpi"])
    except (LibraryError, KeyError, TypeError):
        return MpiName("another MPI")


def mpi_of_mpi4py() -> MpiName:
    """Return the name of the MPI that mpi4py runs on; loads it, and initialises it as mpi4py does."""
    from mpi4py import MPI

    return mpi_of_library(MPI.Get_library_version())
