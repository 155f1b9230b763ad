"""`mpidata list`: the runs of a folder as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from mpidata.launch.page.line import figures_line

__all__ = ["show_runs"]

_COLOURS = {"running": "bold cyan", "complete": "green", "stopped": "yellow", "failed": "red", "gone": "red"}


def show_runs(found: list[dict[str, Any]], folder: str | Path, console: Console) -> None:
    """Show what `look_at_runs` has found in a folder as a table."""
    rows = [("run", "status", "age", "progress")]
    for one in found:
        line = figures_line(one["progress"]) if one["progress"] else one["ignored"] or ""
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
