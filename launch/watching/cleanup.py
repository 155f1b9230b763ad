"""Removes what a job that was killed leaves on the machine: processes, and files of mpirun and of MPI."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from mpidata.errors import LaunchError
from mpidata.native import constants

__all__ = [
    "JobFolders",
    "end_processes",
    "make_folders",
    "parent_of",
    "processes_of",
    "ranks_of",
    "remove_abandoned",
    "states_of_children",
]

_RANKS = (b"OMPI_COMM_WORLD_RANK", b"PMIX_RANK", b"PMI_RANK")
_SEGMENTS = Path("/dev/shm")


@dataclasses.dataclass(frozen=True)
class JobFolders:
    """Folders that only this job uses, so that they can be removed when it has ended.

    Parameters
    ----------
    session : Path
        For mpirun's own files.
    segments : Path or None
        For the memory that ranks share; None if the machine has no /dev/shm.
    locks : tuple of int
        File descriptors that are locked until the job ends.
    """

    session: Path
    segments: Path | None
    locks: tuple[int, ...]

    @property
    def aside(self) -> Path:
        """File for reports that the scheduler cannot write to the run folder; in memory, if there is /dev/shm."""
        return (self.segments or self.session) / "aside"

    def __enter__(self) -> JobFolders:
        """Do nothing; `make_folders` has made the folders."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove both, because no process of the job is left, and those of killed jobs."""
        for folder in (self.session, self.segments):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        for lock in self.locks:
            os.close(lock)
        remove_abandoned()


def make_folders(run: Path) -> JobFolders:
    """Make the folders of a new job.

    Parameters
    ----------
    run : Path
        Its run folder, whose path is written to the file `run` in each, to show where they come from.

    Raises
    ------
    LaunchError
        The folder for temporary files cannot be written.
    """
    try:
        session, lock = _make_locked(Path(tempfile.gettempdir()))
    except OSError as error:
        raise LaunchError(f"Cannot make a folder for temporary files: {error}. Set TMPDIR to one with room.") from None
    segments, locks = None, [lock]
    with contextlib.suppress(OSError):
        segments, lock = _make_locked(_SEGMENTS)
        locks.append(lock)
    for folder in (session, segments):
        with contextlib.suppress(OSError):
            if folder is not None:
                (folder / "run").write_text(f"{run}\n", encoding="utf-8")
    folders = JobFolders(session, segments, tuple(locks))
    with contextlib.suppress(OSError):
        folders.aside.touch(0o600)
    return folders


def remove_abandoned() -> None:
    """Remove the folders of those jobs of this user that were killed before they could do so."""
    for parent in {Path(tempfile.gettempdir()), _SEGMENTS}:
        for folder in parent.glob(f"{_prefix()}*"):
            with contextlib.suppress(OSError):
                if folder.lstat().st_uid == os.geteuid():
                    lock = _lock(folder)  # fails while a job has it
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


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
                if not marks.isdisjoint(Path(entry.path, "environ").read_bytes().split(b"\0")):
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
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                values = dict(variable.partition(b"=")[::2] for variable in variables)
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


def _prefix() -> str:
    return f"mpidata-{os.geteuid()}-"


def _make_locked(parent: Path) -> tuple[Path, int]:
    """Make a folder, and lock it before anybody can take it for an abandoned one; raises OSError."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
        with contextlib.suppress(BlockingIOError, FileNotFoundError):  # another process removes it
            lock = _lock(folder)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)


def _lock(folder: Path) -> int:
    """Descriptor of a folder, locked; the lock ends with the process, and is valid across containers and hosts."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
