"""The state of a run according to its files, which are read while they grow."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mpidata.launch.page.tail import Tail
from mpidata.run.folder import RunFolder
from mpidata.run.runs import look_at_run

__all__ = ["LOST", "View"]

LOST = {
    "group_lost": "groups lost",
    "loader_lost": "loaders lost",
    "inference_lost": "inference ranks lost",
    "learner_lost": "learners lost",
    "trainer_lost": "trainers lost",
    "trainer_joined": "spare trainers joined",
    "trainer_retired": "trainers left",
    "retry": "simulations tried again",
    "set_aside": "set aside",
    "checkpoint_failed": "checkpoints failed",
    "disk_failed": "disk failed",
}
_MOST_LINES = 4000


class View:
    """The state of a run according to its folder.

    Parameters
    ----------
    run : RunFolder
        Of a run that is running, has ended, or was killed; missing files are skipped.

    Attributes
    ----------
    status : str
        running, complete, failed, stopped, or gone.
    error : str or None
        The sentence of its summary.
    figures : dict
        progress.json; empty before all ranks have joined.
    metrics : list of dict
        The newest lines of metrics.jsonl of the current start.
    lost : Counter
        How often each event of LOST occurred.
    start : dict
        The last event `start`.
    """

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.status, self.error = "running", None
        self.figures: dict[str, Any] = {}
        self.metrics: list[dict[str, Any]] = []
        self.lost: Counter[str] = Counter()
        self.start: dict[str, Any] = {}
        self._metrics, self._events = Tail(run.metrics, new=False), Tail(run.events, new=False)

    def look(self) -> None:
        """Read what is new."""
        found = look_at_run(self.run)
        self.status, self.error, self.figures = found["status"], found["error"], found["progress"] or {}
        for event in _objects(self._events.lines()):
            kind = event.get("event")
            if kind in LOST:
                self.lost[kind] += 1
            elif kind == "start":
                self.start = event
                self.metrics.clear()
        # A line is written after the `start` event of its start.
        self.metrics += [line for line in _objects(self._metrics.lines()) if _is_of(line, self.start)]
        del self.metrics[:-_MOST_LINES]


def _objects(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def _is_of(line: dict[str, Any], start: dict[str, Any]) -> bool:
    time, lists = line.get("time"), [line.get(name) for name in ("received", "drawn", "waited_s", "fill")]
    if not isinstance(time, (int, float)) or not isinstance(line.get("seconds"), (int, float)):
        return False
    return time >= start.get("time", 0.0) - 1 and all(isinstance(values, list) for values in lists)
