"""Existing runs: finding their folders, and the state of each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpidata.errors import LaunchError
from mpidata.run.documents.documents import MACHINE, PROGRESS, SUMMARY, read_document
from mpidata.run.folder import RunFolder

__all__ = ["find_run", "find_runs", "look_at_run", "look_at_runs"]

_DEEPEST = 2  # folders between the given one and a run folder: OUTPUT/NAME/NUMBER
_SIGN_OF_LIFE_S = 30.0  # progress.json is written twice a second, which other hosts may see late
_SIGN_OF_LIFE_HERE_S = 5.0  # on the host of the job's scheduler


def find_run(path: str | Path) -> RunFolder:
    """Find a run folder by its path, or by a link to it.

    Raises
    ------
    LaunchError
        It is not a run folder, or other users can have changed it.
    """
    from mpidata.config.load import no_utf_8  # loads pydantic, which a rank that only joins never needs

    run = RunFolder(Path(os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)))
    if (name := no_utf_8(str(run.path))) is not None:
        raise LaunchError(f"The name of the run folder {name} is not UTF-8, so its files cannot hold it. Rename it.")
    run.check()
    return run


def find_runs(folder: str | Path) -> list[RunFolder]:
    """Find the run folders in a folder, or the folder itself; sorted by name and number.

    Raises
    ------
    LaunchError
        There is no such folder.
    """
    top = Path(os.path.abspath(folder))
    if not os.path.isdir(top):
        raise LaunchError(
            f"{folder} is not a folder. Give the folder set by `output` in the job file, for example runs."
        )
    found = [path for path in _folders(top, _DEEPEST) if os.path.exists(RunFolder(path).plan)]
    runs = sorted(found, key=lambda path: (path.parent, int(path.name) if path.name.isdecimal() else -1, path.name))
    return [RunFolder(path) for path in runs if not path.is_symlink()]


def _folders(top: Path, depth: int) -> Iterator[Path]:
    """Find a folder and those up to `depth` levels below, except those that cannot be read or that vanish meanwhile."""
    yield top
    with contextlib.suppress(OSError), os.scandir(top) as entries:
        for path in [top / entry.name for entry in entries if depth and os.path.isdir(entry)]:
            yield from _folders(path, depth - 1)


def look_at_runs(folder: str | Path) -> list[dict[str, Any]]:
    """Return the result of `look_at_run` for each run in a folder."""
    return [look_at_run(run) for run in find_runs(folder)]


def look_at_run(run: RunFolder) -> dict[str, Any]:
    """Return the state of a run; changes nothing.

    Returns
    -------
    dict
        `run`, its folder; `status`, that of its summary.json, `running`, or `gone` if its processes have ended without
        one; `age_s`, since the summary was written or, for a running one, since its start; `progress`, the contents of
        progress.json, or None; `error`, the sentence of its summary, or None; `ignored`, why summary.json or
        progress.json is ignored although it exists, or None.
    """
    summary, ended = read_document(run.summary, SUMMARY)
    progress, going = read_document(run.progress, PROGRESS)
    status = summary.get("status") if summary else "running" if _is_running(run) else "gone"
    changed = _time_of(run.summary if summary else run.plan if status == "running" else run.progress)
    return {
        "run": str(run.path),
        "status": status,
        "age_s": round(max(0.0, time.time() - changed), 1),
        "progress": progress or None,
        "error": summary.get("error"),
        "ignored": ended or going or None,
    }


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _is_running(run: RunFolder) -> bool:
    """Whether the run is locked; judged by its last sign of life if locks are not visible, e.g. on another host."""
    with contextlib.suppress(OSError), open(run.lock, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    here = read_document(run.machine, MACHINE)[0].get("host") == platform.node()
    allowed = _SIGN_OF_LIFE_HERE_S if here else _SIGN_OF_LIFE_S
    return run.progress.exists() and time.time() - _time_of(run.progress) < allowed
