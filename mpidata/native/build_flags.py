"""The output of `mpidata config`: the flags to build a solver with libmpidata.

A C solver is built with ``mpicc solver.c $(mpidata config --cflags --libs)``, a Fortran one with
``gfortran $(mpidata config --fflags) solver.f90 $(mpidata config --flibs)``. If the package was built without a
Fortran compiler, ``--fflags`` holds the source of the module, which is then compiled together with the solver.
"""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpidata.errors import LibraryError
from mpidata.native.installation import folders, read_facts

__all__ = [
    "KINDS",
    "LIBRARIES",
    "build_facts",
    "carrier_program",
    "flags",
    "flags_line",
    "library_path",
    "rank_program",
]

KINDS = {
    "cflags": "flags to compile a C or C++ solver",
    "libs": "flags to link a C or C++ solver",
    "fflags": "flags to compile a Fortran solver, before its source files",
    "flibs": "flags to link a Fortran solver, after its source files",
    "carried": "flags to compile and link a carried program in C or C++, after its source files",
    "fcarried": "flags to compile and link a carried program in Fortran, after its source files",
    "csource": "the C99 source file of libmpidata_carried and its flags, to be compiled into a carried program in C",
    "prefix": "the folder with lib, include and bin, for CMAKE_PREFIX_PATH",
    "pkgconfig": "the folder with mpidata.pc, for PKG_CONFIG_PATH",
    "mpicc": "the compiler wrapper of the MPI that mpidata was built with",
}
"""Option of `mpidata config` -> description of its output."""
LIBRARIES = ("libs", "flibs", "carried", "fcarried", "csource")
"""The options that link a program; the last three include all flags that it needs."""


def library_path() -> Path:
    """Path of ``libmpidata.so``, which the linker reads.

    Raises
    ------
    LibraryError
        If it has not been built.
    """
    return _built(folders().lib / "libmpidata.so")


def rank_program() -> Path:
    """Path of ``mpidata-rank``, the program that every rank starts with.

    Raises
    ------
    LibraryError
        If it has not been built.
    """
    return _built(folders().bin / "mpidata-rank")


def carrier_program() -> Path:
    """Path of ``mpidata-carrier``, the rank that starts a program that is not a rank of the job.

    Raises
    ------
    LibraryError
        If it has not been built.
    """
    return _built(folders().bin / "mpidata-carrier")


def build_facts() -> dict[str, Any]:
    """Read the facts of the library's build.

    Keys: version, mpi, mpicc, mpi_library, mpi_library_dir, fortran_compiler ("" if there was none), folders.

    Raises
    ------
    LibraryError
        If it has not been built, or its facts cannot be read.
    """
    return read_facts(_built(folders().share / "build.json"))


def flags(kind: str) -> list[str]:
    """Return the flags of one kind, a key of `KINDS`, as separate arguments.

    Raises
    ------
    LibraryError
        If the library has not been built.
    KeyError
        If there is no such kind.
    """
    facts = build_facts()
    prefix, lib, include, _, share = folders()
    library_path()
    library = [f"-L{lib}", f"-Wl,-rpath,{lib}"]
    mpi = facts["mpi_library_dir"]
    has_fortran = bool(facts["fortran_compiler"])
    if kind == "fcarried" and not has_fortran:
        raise LibraryError("mpidata was built without a Fortran compiler. Install one, then reinstall mpidata.")
    return {
        "cflags": [f"-I{include}"],
        "libs": [*library, "-lmpidata"],
        "fflags": [f"-I{include}"] if has_fortran else [str(share / "mpidata.f90")],
        # The plain compiler links a Fortran solver: the embedded MPI has no wrapper for Fortran.
        "flibs": [*library, *(["-lmpidata_fortran"] if has_fortran else []), "-lmpidata"]
        + [f"-L{mpi}", f"-Wl,-rpath,{mpi}", f"-l{facts.get('mpi_library', 'mpi')}"],
        "carried": [f"-I{include}", *library, "-lmpidata_carried"],
        "fcarried": [f"-I{include}", *library, "-lmpidata_carried_fortran", "-lmpidata_carried"],
        "csource": [f"-I{include}", str(share / "mpidata_carried.c"), "-lm"],
        "prefix": [str(prefix)],
        "pkgconfig": [str(lib / "pkgconfig")],
        "mpicc": [facts["mpicc"]],
    }[kind]


def flags_line(kinds: Iterable[str]) -> str:
    """Write the flags of several kinds on one line, in the given order, quoted for a shell.

    Raises
    ------
    LibraryError
        If the library has not been built.
    KeyError
        If there is no such kind.
    """
    return shlex.join(flag for kind in kinds for flag in flags(kind))


def _built(path: Path) -> Path:
    if not path.exists():
        raise LibraryError(
            f"mpidata was not built: {path.name} is missing. Expected at {path}. "
            "Run `pip install .` in the source folder of mpidata."
        )
    return path
