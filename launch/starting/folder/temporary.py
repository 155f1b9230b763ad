"""Folders for the temporary files of one job, of mpirun and of MPI, and removal of those of killed jobs."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from mpidata.errors import LaunchError

__all__ = ["JobFolders", "make_folders", "remove_abandoned"]

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


def _prefix() -> str:
    return f"mpidata-{os.geteuid()}-"


def _make_locked(parent: Path) -> tuple[Path, int]:
    """Make a folder, and lock it before anybody can take it for an abandoned one; raises OSError."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
        try:
            lock = _lock(folder)
        except (BlockingIOError, FileNotFoundError):  # another process removes it
            continue
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise
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
