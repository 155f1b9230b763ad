"""The states of existing runs, from their folders."""

from __future__ import annotations

import contextlib
import fcntl
import platform
import time
from pathlib import Path
from typing import Any

from mpidata.run.documents.documents import read_document
from mpidata.run.documents.types import MACHINE, PROGRESS, SUMMARY
from mpidata.run.folder import RunFolder
from mpidata.run.runs import find_runs

__all__ = ["look_at_run", "look_at_runs"]

_SIGN_OF_LIFE_S = 30.0  # progress.json is written twice a second, which other hosts may see late
_SIGN_OF_LIFE_HERE_S = 5.0  # on the host of the job's scheduler


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
