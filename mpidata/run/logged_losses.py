"""What events.jsonl tells of losses: groups that died, tries that failed, simulations that were set aside."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

__all__ = ["read_first_loss", "read_losses"]


def read_losses(events: Path) -> dict[str, Any]:
    """Gather what the summary says of losses from events.jsonl, of this start of the run and those before it.

    Parameters
    ----------
    events : Path
        The file. What came before its last `start` counts only if the run was resumed there, but for what was set
        aside, which stays so; a line that was cut off does not count.

    Returns
    -------
    dict
        `lost_groups`, `retries` and `set_aside`, as in summary.json.
    """
    retries: list[dict[str, Any]] = []
    set_aside: list[dict[str, Any]] = []
    lost = 0
    before = retries, lost
    try:
        with open(events, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                kind = line.partition('"event": "')[2].partition('"')[0]
                if kind == "start":
                    before = retries, lost
                    retries, lost = [], 0
                elif kind == "resume":
                    retries, lost = before
                elif kind == "retry_set_aside":
                    set_aside = []
                lost += kind == "group_lost"
                if kind in ("retry", "set_aside"):
                    with contextlib.suppress(ValueError, KeyError):  # it was cut off
                        entry = json.loads(line)
                        del entry["time"], entry["event"]
                        (retries if kind == "retry" else set_aside).append(entry)
    except OSError:
        pass
    return {"lost_groups": lost, "retries": retries, "set_aside": set_aside}


def read_first_loss(events: Path) -> dict[str, Any] | None:
    """Find the event of the first group that was lost since the last start, in events.jsonl; None without one."""
    first: str | None = None
    try:
        with open(events, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                kind = line.partition('"event": "')[2].partition('"')[0]
                if kind == "start":
                    first = None
                elif kind == "group_lost":
                    first = first or line
        found = json.loads(first) if first else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
