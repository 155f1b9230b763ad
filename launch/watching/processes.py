"""Finds and ends the processes of a run on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from mpidata.native import constants

__all__ = ["end_processes", "parent_of", "processes_of", "ranks_of", "states_of_children", "variables_of"]

_RANKS = (b"OMPI_COMM_WORLD_RANK", b"PMIX_RANK", b"PMI_RANK")
# About half a second in all: an exec from a folder that hangs must not stop the caller. Not a time, of which a pause of
# this process would leave nothing.
_LOOKS, _LOOK_EVERY_S = 1500, 0.0002


def variables_of(pid: int) -> list[bytes]:
    """Return a process's environment variables, each as NAME=VALUE; may wait for about 0.5 s.

    Linux shows none between the start of an exec and its end, so that a process of a run would seem to belong to
    nobody: this is waited for.

    Parameters
    ----------
    pid : int
        Process id.

    Raises
    ------
    OSError
        The process has ended, or belongs to another user.
    """
    for _ in range(_LOOKS):
        if (variables := Path(f"/proc/{pid}/environ").read_bytes()) or not _has_variables(pid):
            break
        time.sleep(_LOOK_EVERY_S)
    return variables.split(b"\0")


def _has_variables(pid: int) -> bool:
    """Whether a process has variables, or will once its exec is complete; not if it has ended or is of the kernel."""
    with contextlib.suppress(OSError):
        os.readlink(f"/proc/{pid}/exe")  # fails for the last two
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        code, env_start, env_end = fields[23], *fields[47:49]  # fields 26, 50, 51 in proc(5); an exec sets `code` last
        return code == "0" or env_start != env_end
    return False


def processes_of(run: Path) -> list[int]:
    """Return the ids of a run's processes on this machine: its launcher, its ranks and all that these started.

    Parameters
    ----------
    run : Path
        The run folder, which all have in their environment as MPIDATA_RUN or MPIDATA_CARRIED_RUN.
    """
    # Of the job; of programs that are not its ranks.
    marks = {f"{mark}={run}".encode() for mark in ("MPIDATA_RUN", constants.CARRIED_MARK)}
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or belongs to someone else
                if not marks.isdisjoint(variables_of(int(entry.name))):
                    found.append(int(entry.name))
    return found


def ranks_of(run: Path) -> dict[int, int]:
    """Find the processes mpidata-rank of a run on this machine.

    Parameters
    ----------
    run : Path
        The run folder.

    Returns
    -------
    dict of int to int
        Process id of each rank of the world that runs here.
    """
    found: dict[int, int] = {}
    for pid in processes_of(run):
        with contextlib.suppress(OSError, ValueError, StopIteration):
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:] == [os.fsencode(run), b""]:
                values = dict(variable.partition(b"=")[::2] for variable in variables_of(pid))
                found[pid] = next(int(values[name]) for name in _RANKS if name in values)
    # Its child also looks like it until it has become the program.
    return {rank: pid for pid, rank in found.items() if parent_of(pid) not in found}


def parent_of(pid: int) -> int:
    """Return the process id of a process's parent; 0 if it has none or has ended."""
    return _state_of(pid)[1]


def states_of_children(pid: int) -> list[str]:
    """List the states of a process's children, as in /proc: Z for one that has ended and is not waited for."""
    states = (_state_of(int(entry.name)) for entry in os.scandir("/proc") if entry.name.isdecimal())
    return [state for state, parent in states if parent == pid]


def _state_of(pid: int) -> tuple[str, int]:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
        return state, int(parent)
    except (OSError, ValueError):
        return "", 0


def end_processes(run: Path, timeout_s: float = 3.0) -> list[int]:
    """Kill the remaining processes of a run on this machine.

    Parameters
    ----------
    run : Path
        The run folder.
    timeout_s : float
        Longest time to wait until they have ended.

    Returns
    -------
    list of int
        Process ids that were still there.
    """
    deadline = time.monotonic() + timeout_s
    found: list[int] = []
    while (left := processes_of(run)) and time.monotonic() < deadline:
        found += left
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return found
