"""The losses in events.jsonl: groups and trainers that died, tries that failed, simulations set aside."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

__all__ = ["TRAINER_CHANGES", "read_first_loss", "read_losses"]

_CHANGES = {
    "trainer_lost": "lost_trainers",
    "trainer_joined": "joined_trainers",
    "trainer_retired": "retired_trainers",
}
TRAINER_CHANGES = tuple(_CHANGES.values())  # lists of the summary


def read_losses(events: Path) -> dict[str, Any]:
    """Read the losses for the summary from events.jsonl, of this start of the run and those before it.

    Parameters
    ----------
    events : Path
        The file. Events before its last `start` count only if the run was resumed there, except that simulations set
        aside or cancelled stay so; truncated lines do not count.

    Returns
    -------
    dict
        `lost_groups`, `retries` and `set_aside`, as in summary.json; if not empty, `run_again`, those of
        TRAINER_CHANGES, and the ids of `cancelled` simulations.
    """
    found: dict[str, Any] = {"lost_groups": 0, "retries": []}
    set_aside: list[dict[str, Any]] = []
    cancelled: list[int] = []
    before = found
    try:
        with open(events, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                kind = line.partition('"event": "')[2].partition('"')[0]
                if kind == "start":
                    before, found = found, {"lost_groups": 0, "retries": []}
                elif kind == "resume":
                    found = before
                elif kind == "retry_set_aside":
                    set_aside = []
                elif kind == "group_lost":
                    found["lost_groups"] += 1
                elif kind == "simulation_cancelled":
                    with contextlib.suppress(ValueError, KeyError):
                        cancelled.append(_event(line)["simulation"])
                elif kind in ("retry", "set_aside", "run_again", *_CHANGES):
                    with contextlib.suppress(ValueError, KeyError):  # the line is truncated
                        _add(_event(line), found, set_aside)
    except OSError:
        pass
    return found | {"set_aside": set_aside} | ({"cancelled": cancelled} if cancelled else {})


def _event(line: str) -> dict[str, Any]:
    """Return the event of a line; raises ValueError for a line that is truncated or has other types."""
    from mpidata.run.documents.documents import fault  # loads pydantic, which the scheduler needs only for a resume
    from mpidata.run.documents.types import EVENT

    event: dict[str, Any] = json.loads(line)
    if (clause := fault(event, EVENT)) is not None:
        raise ValueError(clause)
    return event


def _add(event: dict[str, Any], found: dict[str, Any], set_aside: list[dict[str, Any]]) -> None:
    kind = event.pop("event")
    del event["time"]
    if kind in _CHANGES:
        found.setdefault(_CHANGES[kind], []).append(event["trainer"])
    elif kind != "run_again":
        (found["retries"] if kind == "retry" else set_aside).append(event)
    elif "group" not in event:  # because a trainer had died
        found["run_again"] = found.get("run_again", 0) + 1


def read_first_loss(events: Path) -> dict[str, Any] | None:
    """Return the event of the first group lost since the last start in events.jsonl; None if there is none."""
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
