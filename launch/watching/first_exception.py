"""The traceback of the first exception, which `mpidata run` shows at once: later ones are mostly the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpidata.launch.page.tail import Tail
from mpidata.run.exits import tail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun

__all__ = ["FirstException"]

_LOOK_AT = 500  # lines at the end of a log
_BEGINS = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above", "The above exception was")  # two lines above the next traceback


class FirstException:
    """Looks for the first exception of this start in the events of a run.

    Parameters
    ----------
    run : RunFolder
        The run with its events and logs; existing events are skipped.
    plan : Plan
        Of the job.
    """

    def __init__(self, run: RunFolder, plan: Plan) -> None:
        self._run = run
        self._plan = plan
        self._events: Tail | None = Tail(run.events)

    def lines(self, last: bool = False) -> list[str]:
        """Return the lines to show, once, after the first exception; otherwise nothing."""
        for line in self._events.lines(last) if self._events is not None else []:
            if '"cause": "raised"' in line and (event := _read(line)).get("cause") == "raised":
                self._events = None
                return self._told(event)
        return []

    def _told(self, event: dict[str, Any]) -> list[str]:
        who, log = self._raiser(event)
        first = f"{who} {event['how']}. This is the first exception of this run; {log} has:"
        return [first, *(f"  {line}" for line in _traceback(tail(log, _LOOK_AT), str(event["how"])))]

    def _raiser(self, event: dict[str, Any]) -> tuple[str, Path]:
        run = PlannedRun(self._run, self._plan)
        if "trainer" in event:
            return f"Trainer {event['trainer']}", run.log(1 + int(event["trainer"]))
        group = int(event["group"])
        return f"A solver of group {group}", run.group_log(group, int(event.get("rank_in_group") or 0))


def _traceback(lines: list[str], how: str) -> list[str]:
    """Find the traceback of an exception that the line after it names, with those that led to it."""
    end = next((i for i, line in enumerate(lines) if line.endswith(how)), len(lines) - 1)
    begins = [i for i in range(end) if lines[i] == _BEGINS]
    while len(begins) > 1 and lines[begins[-1] - 2].startswith(_CHAINED):
        begins.pop()
    return lines[begins[-1] if begins else max(0, end - 10) : end + 1]


def _read(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
