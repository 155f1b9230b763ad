"""The state of a run according to its files, which are read while they grow."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mpidata.launch.page.tail import Tail
from mpidata.run.documents.documents import Lines
from mpidata.run.documents.types import EVENT, METRICS
from mpidata.run.folder import RunFolder
from mpidata.run.run_states import look_at_run

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
    problems : list of str
        A sentence for each file that is ignored as a whole or in part, because its values have other types.
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
        self.problems: list[str] = []
        self._event_lines, self._metric_lines = Lines(run.events, EVENT), Lines(run.metrics, METRICS)
        self._metrics, self._events = Tail(run.metrics, new=False), Tail(run.events, new=False)

    def look(self) -> None:
        """Read what is new."""
        found = look_at_run(self.run)
        self.status, self.error, self.figures = found["status"], found["error"], found["progress"] or {}
        for event in filter(None, map(self._event_lines.parse, self._events.lines())):
            kind = event["event"]
            if kind in LOST:
                self.lost[kind] += 1
            elif kind == "start":
                self.start = event
                self.metrics.clear()
        # A line is written after the `start` event of its start.
        lines = filter(None, map(self._metric_lines.parse, self._metrics.lines()))
        begin = self.start.get("time", 0.0) - 1
        self.metrics += [line for line in lines if line.get("time", 0.0) >= begin]
        del self.metrics[:-_MOST_LINES]
        told = found["ignored"], self._event_lines.problem, self._metric_lines.problem
        self.problems = [problem for problem in told if problem]
