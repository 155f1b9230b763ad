"""Runs by a name that the user chooses, so that a batch script that is restarted resumes its own run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import check_own

__all__ = ["NamedRun", "changed_since", "find_named"]

_NOTE = ".begun-"
_LONGEST = 255 - len(_NOTE)  # bytes; no common file system has longer names of files


class NamedRun:
    """The note of the run that was started under a name.

    Nobody else can find or change it until it is closed: two concurrent starts under one name start only one run.

    Parameters
    ----------
    job : Job
        Whose output folder holds the note.
    name : str
        Letters, digits, `.`, `_` and `-`.

    Attributes
    ----------
    run : RunFolder or None
        The run; None if no run was started, or if its folder was removed.

    Raises
    ------
    LaunchError
        The name cannot be part of a file's name, another process has the note, or it cannot be trusted or read.
    """

    def __init__(self, job: Job, name: str) -> None:
        self._path = _note_of(job, name)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            fix = "Make its folder writable, or set 'output' to another one."
            if os.path.lexists(self._path):
                fix = "Remove it to start a new run."
            raise LaunchError(f"Cannot open {self._path}: {error.strerror}. {fix}") from None
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise LaunchError(f"{self._path} is not a regular file. Remove it to start a new run.")
            check_own(self._file, self._path)
            self.run = self._read(name)
        except BaseException:
            self.close()
            raise

    def note(self, run: RunFolder) -> None:
        """Note that a run was started under the name; raises LaunchError if the note cannot be written."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{run.path}\n".encode(), 0)
        except OSError as error:
            raise LaunchError(f"Cannot write {self._path}: {error.strerror}. Make room there.") from None
        self.run = run

    def close(self) -> None:
        """Release the note; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self, name: str) -> RunFolder | None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LaunchError(
                f"Another `mpidata run --as {name}` is just starting. {self._path}. Wait until it ends, or stop it."
            ) from None
        except OSError:  # a file system without locks
            pass
        try:
            text = os.pread(self._file, 1 << 16, 0).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise LaunchError(f"Cannot read {self._path}: {error}. Remove it to start a new run.") from None
        run = RunFolder(Path(text.rstrip("\n")))
        # An incomplete note is ignored: its run had not started.
        return run if text.endswith("\n") and run.plan.is_file() else None


def find_named(job: Job, name: str) -> RunFolder | None:
    """Find the run started under a name, else None; raises LaunchError as `NamedRun`, but makes nothing."""
    if not os.path.lexists(_note_of(job, name)):
        return None
    with contextlib.closing(NamedRun(job, name)) as named:
        return named.run


def _note_of(job: Job, name: str) -> Path:
    if not name or not all(c.isalnum() or c in "._-" for c in name):
        raise LaunchError(f"--as {name!r} is not a valid name. Use letters, digits, '.', '_' and '-'.")
    if (size := len(os.fsencode(name))) > _LONGEST:
        raise LaunchError(f"--as: the name {name[:20]}... has {size} bytes. Use at most {_LONGEST}.")
    return Path(os.path.abspath(job.folder / job.output)) / job.name / f"{_NOTE}{name}"


def changed_since(job: Job, run: RunFolder, then: Job) -> str:
    """Name the keys in which a job file differs from that of the run to resume; an empty text if they are equal.

    Parameters
    ----------
    job : Job
        The job file as it is now, with the overrides.
    run : RunFolder
        The run.
    then : Job
        The job that it resumes, with the same overrides.
    """
    now, before = job.resolved(), then.resolved()
    if "watermark" not in job.buffer.model_fields_set:  # its default follows the capacity, which an override may change
        now["buffer"]["watermark"] = before["buffer"]["watermark"]
    keys = ", ".join(f"'{key}'" for key in _differing(now, before))
    since = f"since {run.path} was started, which continues with its old values"
    return f"{job.path} has changed in {keys} {since}. Use another name to start a new run." if keys else ""


def _differing(one: dict[str, Any], other: dict[str, Any], above: str = "") -> Iterator[str]:
    for key in dict.fromkeys((*one, *other)):
        mine, its = one.get(key), other.get(key)
        if isinstance(mine, dict) and isinstance(its, dict):
            yield from _differing(mine, its, f"{above}{key}.")
        elif mine != its:
            yield f"{above}{key}"
