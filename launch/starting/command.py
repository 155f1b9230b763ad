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
    The environment variable `MPIDATA_RANK` overrides it.

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
    """Return the command that starts all ranks of a plan, on this machine unless `hosts` is given.

    Parameters
    ----------
    mpirun, shim : Path
        As `find_mpirun` and `shim_path` return them.
    plan : Plan
        Of the job.
    hosts : Path, optional
        File with the host of each rank, one per line.
    """
    options = mpirun_options(plan.fault_tolerance == "ulfm", hosts)
    if plan.trainers_at_least:  # han hangs after a second death among the survivors (Open MPI 5.0)
        options += ["--mca", "coll", "^han"]
    return [str(mpirun), "-n", str(plan.world), *options, str(shim), str(plan.run)]


def mpirun_options(ulfm: bool, hosts: Path | None = None) -> list[str]:
    """Options of Open MPI's mpirun for a job; `ulfm` if the job must outlive the death of its ranks."""
    # Ranks usually outnumber cores here and mostly wait; bound to cores, they would wait for one another. A trainer
    # bound to a core would share it with its receive thread.
    where = [":OVERSUBSCRIBE"] if hosts is None else ["seq:OVERSUBSCRIBE", "--hostfile", str(hosts)]
    options = ["--map-by", *where, "--bind-to", "none"]
    if ulfm:
        # Without the second option, the death of a spawned rank would end all that were spawned with it.
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
        Whether root starts it, which Open MPI refuses unless two variables are set.
    session, segments : Path, optional
        Folders for this job only: for mpirun's own files, and for the ranks' shared memory.
    environ : mapping of str to str, optional
        The environment; variables that the user has set there are kept.
    old : bool
        Whether mpirun is that of Open MPI 4, where the variables for these folders have other names.
    one_host : bool
        Whether this is the only host; else `session` is only for mpirun's files, not for those of other daemons.
    """
    # With its sensors, which Open MPI does not use, PMIx 5.0 may wait forever for the lock of a dead process (openpmix
    # pull request 4233): nothing can be spawned after that.
    variables = {} if old else {"PMIX_MCA_psensor": "^heartbeat,file"}
    if root:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if session is not None and old and one_host:  # a rank of Open MPI 4 refuses a folder that only mpirun has
        variables["OMPI_MCA_orte_tmpdir_base"] = str(session)
    elif session is not None and not old:
        variables[f"PRTE_MCA_prte_{'' if one_host else 'local_'}tmpdir_base"] = str(session)
    if segments is not None:
        variables[f"OMPI_MCA_btl_{'vader' if old else 'sm'}_backing_directory"] = str(segments)
    return {name: value for name, value in variables.items() if name not in (environ or {})}


def silence_environment(timeout_s: float, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that let Open MPI's daemons notice the loss of a host; those that the user has set are kept.

    Parameters
    ----------
    timeout_s : float
        Silence after which a host is lost, in whole seconds: half of it without traffic, then five probes.
    environ : mapping of str to str
        The environment.
    """
    # TCP's own keep-alive; with PRRTE's default the loss would be noticed after eight minutes.
    between = max(1, int(timeout_s / 2 / 5))
    values = {"time": max(1, round(timeout_s) - 5 * between), "intvl": between, "probes": 5}
    variables = {f"PRTE_MCA_oob_tcp_keepalive_{name}": str(value) for name, value in values.items()}
    return {name: value for name, value in variables.items() if name not in environ}


def command_line(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return the command as a line for a shell."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(command)])
