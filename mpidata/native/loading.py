"""Finding and loading libmpidata, of this version and with the MPI of this process. Nothing is loaded before `load`."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from mpidata import __version__
from mpidata.errors import LibraryError
from mpidata.native.constants import open_carried
from mpidata.native.installation import folders
from mpidata.native.library import CARRIED, SIGNATURES, Library
from mpidata.native.linked_mpi import INSTALL_ANEW, mpi_of_build, mpi_of_mpi4py

__all__ = ["find", "load", "load_carried", "load_checked"]


def find() -> Path:
    """Path of libmpidata: the file that MPIDATA_LIBRARY names, otherwise that of this package or of the site.

    Raises
    ------
    LibraryError
        There is no such file.
    """
    named = os.environ.get("MPIDATA_LIBRARY")
    path = Path(named) if named else folders().lib / "libmpidata.so.0"
    if path.is_file():
        return path
    if named:
        raise LibraryError(
            f"MPIDATA_LIBRARY names {named}, which is not a file. Unset it, or set it to the path of libmpidata.so.0."
        )
    if (hidden := _hidden_installation()) is not None:
        raise LibraryError(
            f"{path.parents[1]} is a source folder without libmpidata, and hides the mpidata that is installed in "
            f"{hidden}: Python searches {path.parents[2]} first. Start Python in another folder, or remove that one "
            "from PYTHONPATH."
        )
    raise LibraryError(
        f"libmpidata is not built: there is no {path}. Run `pip install .` in the source tree, or name the library in "
        "MPIDATA_LIBRARY."
    )


def _hidden_installation() -> Path | None:
    """Find another mpidata, with its library, later in the module path."""
    own = Path(__file__).parents[1]
    others = (Path(entry or ".").absolute() / "mpidata" for entry in sys.path)
    return next((one for one in others if one != own and (one / "lib" / "libmpidata.so.0").is_file()), None)


@functools.cache
def load() -> Library:
    """Load libmpidata and declare its functions' types; returns the same object on every call.

    Raises
    ------
    LibraryError
        The library is missing, cannot be loaded, or is of another version of mpidata.
    """
    path = find()
    try:
        library = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise LibraryError(
            f"Cannot load {path}, built with {mpi_of_build(path)}: {error}. Install it for the MPI of this "
            f"environment: `{INSTALL_ANEW}."
        ) from None
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _other_version(path, f"it has no function {name}") from None
        function.restype = result
        function.argtypes = arguments
    version = library.mpidata_version().decode()
    if version != __version__:
        raise _other_version(path, f"it is {version}")
    return library


@functools.cache
def load_carried() -> Library:
    """Load libmpidata_carried, which has a solver's calls without MPI; returns the same object on every call.

    Raises
    ------
    LibraryError
        The library is missing, or of another version of mpidata.
    """
    library = open_carried()
    for name, (result, arguments) in CARRIED.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _other_version(Path(library._name), f"it has no function {name}") from None
        function.restype, function.argtypes = result, arguments
    return library


def _other_version(path: Path, why: str) -> LibraryError:
    return LibraryError(
        f"{path} is not libmpidata {__version__}, which this mpidata needs: {why}. Unset MPIDATA_LIBRARY if it is set, "
        f"otherwise run `pip install .` in the source tree of {__version__}."
    )


def load_checked() -> Library:
    """Like `load`, in a process in which mpi4py has initialised MPI: checks that both use the same MPI.

    Raises
    ------
    LibraryError
        As for `load`; or the library was built with another MPI than the one that mpi4py runs on.
    """
    library = load()
    initialized = ctypes.c_int(0)
    try:
        # Found in the MPI that libmpidata itself is linked to.
        library.MPI_Initialized(ctypes.byref(initialized))
    except AttributeError:
        return library
    if not initialized.value:
        raise LibraryError(
            f"{find()} was built with {mpi_of_build(find())}, but mpi4py runs on {mpi_of_mpi4py()}. Install it for "
            f"that one: `{INSTALL_ANEW}; or make mpi4py use the other one (MPI4PY_MPIABI, MPI4PY_LIBMPI)."
        )
    return library
