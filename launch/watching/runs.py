"""`mpidata list`: the runs of a folder, and how each is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mpidata.errors import LaunchError
from mpidata.launch.page.line import figures_line
from mpidata.run.folder import RunFolder

__all__ = ["find_runs", "look_at_run", "look_at_runs", "show_runs"]

_DEEPEST = 2  # folders between the given one and a run folder: OUTPUT/NAME/NUMBER
_SIGN_OF_LIFE_S = 30.0  # progress.json is written twice a second; other hosts may see that late
_SIGN_OF_LIFE_HERE_S = 5.0  # where the job's scheduler runs
_COLOURS = {"running": "bold cyan", "complete": "green", "stopped": "yellow", "failed": "red", "gone": "red"}


def find_runs(folder: str | Path) -> list[RunFolder]:
    """Find the run folders in a folder, or the folder itself; by name, and their numbers in order.

    Raises
    ------
    LaunchError
        There is no such folder.
    """
    top = Path(os.path.abspath(folder))
    if not top.is_dir():
        raise LaunchError(f"{folder} is no folder. Name the one that `output` of the job file names, such as runs.")
    plan = RunFolder(Path()).plan
    found = {
        path.parents[len(plan.parts) - 1]
        for depth in range(_DEEPEST + 1)
        for path in top.glob("*/" * depth + str(plan))
    }
    runs = sorted(found, key=lambda path: (path.parent, int(path.name) if path.name.isdecimal() else -1, path.name))
    return [RunFolder(path) for path in runs if not path.is_symlink()]


def look_at_runs(folder: str | Path) -> list[dict[str, Any]]:
    """Tell of each run in a folder what `look_at_run` tells."""
    return [look_at_run(run) for run in find_runs(folder)]


def look_at_run(run: RunFolder) -> dict[str, Any]:
    """Tell how a run is; nothing is changed.

    Returns
    -------
    dict
        `run`, its folder; `status`, that of its summary.json, `running`, or `gone` where its processes have ended
        without one; `age_s`, since that was written or, of a run that goes on, since it began; `progress`, the contents
        of progress.json, or None; `error`, the sentence of its summary, or None.
    """
    summary, progress = _read(run.summary), _read(run.progress)
    status = summary.get("status") if summary else "running" if _is_running(run) else "gone"
    changed = _time_of(run.summary if summary else run.plan if status == "running" else run.progress)
    return {
        "run": str(run.path),
        "status": status,
        "age_s": round(max(0.0, time.time() - changed), 1),
        "progress": progress or None,
        "error": summary.get("error"),
    }


def _read(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _is_running(run: RunFolder) -> bool:
    """Whether somebody holds the run; by its last sign of life where that cannot be seen, on another host say."""
    with contextlib.suppress(OSError), open(run.lock, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    allowed = _SIGN_OF_LIFE_HERE_S if _read(run.machine).get("host") == platform.node() else _SIGN_OF_LIFE_S
    return run.progress.exists() and time.time() - _time_of(run.progress) < allowed


def show_runs(found: list[dict[str, Any]], folder: str | Path, console: Console) -> None:
    """Show what `look_at_runs` has found in a folder as a table."""
    rows = [("run", "status", "age", "progress")]
    for one in found:
        line = ""
        with contextlib.suppress(KeyError, TypeError, ValueError):  # of another version
            line = figures_line(one["progress"]) if one["progress"] else ""
        path = os.path.relpath(one["run"], start=os.path.abspath(folder))
        rows.append((path, str(one["status"]), _age(one["age_s"]), line))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:  # never folded: a path must stay in one piece
        path, status, age = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        console.print(
            Text(f"{path}  ").append(status, _COLOURS.get(row[1], "")).append(f"  {age}  {row[3]}"), soft_wrap=True
        )


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
