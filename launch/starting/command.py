"""The command that starts the ranks of a job, as pure functions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpidata.errors import LaunchError
from mpidata.native.build_flags import rank_program
from mpidata.run.plan import Plan

__all__ = ["command_line", "mpirun_command", "mpirun_environment", "mpirun_options", "shim_path", "silence_environment"]


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
    options = mpirun_options(plan.fault_tolerance == "ulfm", hosts)
    if plan.trainers_at_least:  # han hangs after a second death of those that live on together (Open MPI 5.0)
        options += ["--mca", "coll", "^han"]
    return [str(mpirun), "-n", str(plan.world), *options, str(shim), str(plan.run)]


def mpirun_options(ulfm: bool, hosts: Path | None = None) -> list[str]:
    """Options of Open MPI's mpirun for a job, `ulfm` for one that is to outlive the death of its ranks."""
    # Ranks outnumber cores as a rule here, and mostly wait; bound to cores they would wait for one another. A trainer
    # bound to a core would have its receive thread there too.
    where = [":OVERSUBSCRIBE"] if hosts is None else ["seq:OVERSUBSCRIBE", "--hostfile", str(hosts)]
    options = ["--map-by", *where, "--bind-to", "none"]
    if ulfm:
        # Without the second one the death of a spawned rank would take those along that were spawned with it.
        options += ["--with-ft", "ulfm", "--prtemca", "state_base_recoverable", "1"]
    return options


def mpirun_environment(
    root: bool,
    session: Path | None = None,
    segments: Path | None = None,
    environ: Mapping[str, str] | None = None,
    old: bool = False,
    one_host: bool = True,
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
    old : bool
        Whether it is that of Open MPI 4, which calls these folders otherwise.
    one_host : bool
        Whether this is the only host; else `session` is for the files of mpirun only, not for those of other daemons.
    """
    # With its sensors, which Open MPI does not use, PMIx 5.0 may wait for ever for the lock of a process that has died
    # (openpmix pull request 4233): nothing can be spawned any more.
    variables = {} if old else {"PMIX_MCA_psensor": "^heartbeat,file"}
    if root:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if session is not None and old and one_host:  # a rank of Open MPI 4 refuses one of mpirun alone
        variables["OMPI_MCA_orte_tmpdir_base"] = str(session)
    elif session is not None and not old:
        variables[f"PRTE_MCA_prte_{'' if one_host else 'local_'}tmpdir_base"] = str(session)
    if segments is not None:
        variables[f"OMPI_MCA_btl_{'vader' if old else 'sm'}_backing_directory"] = str(segments)
    return {name: value for name, value in variables.items() if name not in (environ or {})}


def silence_environment(timeout_s: float, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that let Open MPI's daemons notice the loss of a host; what the user has set stays.

    Parameters
    ----------
    timeout_s : float
        After so many seconds of silence, in whole seconds. Half of it without traffic, then five probes.
    environ : mapping of str to str
        The environment.
    """
    # TCP's own keep-alive; PRRTE's default would notice it after eight minutes.
    between = max(1, int(timeout_s / 2 / 5))
    values = {"time": max(1, round(timeout_s) - 5 * between), "intvl": between, "probes": 5}
    variables = {f"PRTE_MCA_oob_tcp_keepalive_{name}": str(value) for name, value in values.items()}
    return {name: value for name, value in variables.items() if name not in environ}


def command_line(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Write the command as a line for a shell."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)])
