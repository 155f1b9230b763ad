"""Checks of the MPI: whether libmpidata, mpi4py and mpirun belong to the same one, and its capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpidata.doctor.finding import Finding, State
from mpidata.mpi.mpi_name import OPEN_MPI, MpiName
from mpidata.native.linked_mpi import INSTALL_ANEW

__all__ = ["agreement", "on_path", "pair", "spawn", "threads", "ulfm"]

_RESTARTS = "`mpidata run --restarts 3` resumes it from its last checkpoint."


def agreement(library: MpiName, mpi4py: MpiName | None, mpirun: MpiName | None) -> Finding:
    """Compare the MPIs of libmpidata, of mpi4py and of mpirun; None: unknown."""
    found = f"libmpidata {library}, mpi4py {mpi4py or '?'}, mpirun {mpirun or '?'}"
    if mpi4py is not None and not mpi4py.is_same(library):
        fix = (
            f"libmpidata and mpi4py use different MPIs. Install mpidata for {mpi4py}: `{INSTALL_ANEW}; or "
            f"build mpi4py for {library}: `MPICC=<its mpicc> pip install --no-cache-dir --force-reinstall "
            "--no-binary mpi4py mpi4py`."
        )
        return Finding("one MPI", "failed", found, fix)
    if mpirun is not None and not mpirun.starts(library):
        return Finding("one MPI", "failed", found, f"Add the folder of the mpirun of {library} to PATH.")
    return Finding("one MPI", "ok", found)


def on_path(first: Path | None, mpi: MpiName | None, library: MpiName, chosen: Path) -> Finding:
    """Check which mpirun the command `mpirun` starts."""
    if first is None or first == chosen:
        return Finding("mpirun", "ok", str(chosen))
    if mpi is None or mpi.starts(library):
        return Finding("mpirun", "ok", f"{chosen}; the first in PATH is {first} of {mpi or 'unknown origin'}")
    fix = f"`mpidata run` uses the right one. By hand write {chosen}, or put its folder first in PATH."
    return Finding("mpirun", "warning", f"{chosen}, but `mpirun` is {first} of {mpi}", fix)


def pair(result: Mapping[str, Any] | None, said: str, mpirun: Path) -> Finding:
    """Judge the start of two ranks, from the report of rank 0 (None: there was none) and the launcher's output."""
    if result is None:
        why = said.strip().splitlines()[-1] if said.strip() else "it did not answer within 20 s"
        fix = f"Try `{mpirun} -n 2 hostname`, and look at the variables of MPI in the environment."
        return Finding("two ranks", "failed", f"{mpirun} does not start them: {why}", fix)
    if result["size"] != 2:
        fix = f"{mpirun} does not belong to the MPI of mpi4py, {result['mpi']}. Use the mpirun of that MPI."
        return Finding("two ranks", "failed", f"two worlds of size {result['size']}", fix)
    return Finding("two ranks", "ok", f"{result['seconds']:.1f} s to start; they see each other")


def threads(level: int) -> Finding:
    """Judge the thread level that MPI provides."""
    names = ("MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE")
    name = names[level] if 0 <= level < len(names) else f"level {level}"
    if level == len(names) - 1:
        return Finding("threads", "ok", name)
    return Finding(
        "threads", "failed", name, "Trainers need MPI_THREAD_MULTIPLE. Use an MPI built with thread support."
    )


def ulfm(library: MpiName, available: bool, slurm: bool) -> Finding:
    """Judge whether a job survives the death of a solver."""
    if available:
        why = "; not under `srun`, because ULFM needs mpirun" if slurm else ""
        return Finding("ULFM", "ok", f"a job survives the death of a solver{why}")
    what = "a job ends if a rank dies"
    if library.name == OPEN_MPI:
        return Finding("ULFM", "warning", what, f"With Open MPI 5 built with ULFM it would survive. {_RESTARTS}")
    return Finding("ULFM", "warning", f"{library} has no ULFM: {what}", _RESTARTS)


def spawn(result: Mapping[str, Any] | None, said: str, needed: bool) -> Finding:
    """Judge an attempt to spawn a rank."""
    if result is not None and result.get("spawned"):
        return Finding("spawn", "ok", f"{result['seconds']:.2f} s for a rank")
    fix = "Use `start: split`, or an MPI that can spawn."
    lines: Sequence[str] = said.strip().splitlines()
    if "reachable pairing" in said or "unable to reach each other" in said:  # Open MPI 5.0.7 with IPv6, as in Debian 13
        lines = ["a spawned rank and its parent find no common network"]
        fix = f"Try `export OMPI_MCA_btl_tcp_disable_family=6`, which disables IPv6. {fix}"
    why = str(result.get("error") if result else (lines[-1] if lines else "no answer within 20 s")).strip()
    state: State = "failed" if needed else "warning"
    return Finding("spawn", state, f"MPI_Comm_spawn does not work: {why}", fix)
