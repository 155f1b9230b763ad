"""Runs by a name of their starter's, so that a batch script that is started again goes on with its own run."""

from __future__ import annotations

import os
from pathlib import Path

from mpidata.config import Job
from mpidata.errors import LaunchError
from mpidata.run_folder import RunFolder, write_text

__all__ = ["find_begun", "note_begun"]


def find_begun(job: Job, name: str) -> RunFolder | None:
    """Find the run of a job that was begun under a name, or None.

    Raises
    ------
    LaunchError
        The name cannot be part of a file's name.
    """
    try:
        run = RunFolder(Path(_file(job, name).read_text(encoding="utf-8").rstrip("\n")))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError(f"Cannot read {_file(job, name)}: {error}. Remove it to begin a new run.") from None
    return run if run.plan.is_file() else None


def note_begun(job: Job, name: str, run: RunFolder) -> None:
    """Note that a run was begun under a name.

    Raises
    ------
    LaunchError
        The note cannot be written.
    """
    try:
        write_text(_file(job, name), f"{run.path}\n")
    except OSError as error:
        raise LaunchError(f"Cannot write {_file(job, name)}: {error.strerror}. Make it writable.") from None


def _file(job: Job, name: str) -> Path:
    if not name or not all(c.isalnum() or c in "._-" for c in name):
        raise LaunchError(f"--as {name!r} is no name. Use letters, digits, '.', '_' and '-'.")
    return Path(os.path.abspath(job.folder / job.output)) / job.name / f".begun-{name}"
