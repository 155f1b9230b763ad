"""The history of a run from events.jsonl: which group ran which simulation when, and failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpidata.run.documents.documents import Lines
from mpidata.run.documents.types import EVENT

__all__ = ["Bar", "Clock", "Mark", "History", "read_events", "tell"]

_MARKS = {
    "group_lost": "group lost",
    "loader_lost": "loader lost",
    "inference_lost": "inference rank lost",
    "learner_lost": "learner lost",
    "trainer_lost": "trainer lost",
    "trainer_joined": "trainer joined",
    "trainer_retired": "trainer retired",
    "retry": "retry",
    "set_aside": "set aside",
    "checkpoint": "checkpoint",
    "checkpoint_failed": "checkpoint failed",
    "record_stopped": "recording stopped",
    "disk_failed": "disk failed",
    "relief": "relief",
    "hand_over": "hand over",
    "scale": "scaled",
    "error": "error",
}


@dataclass
class Bar:
    """A simulation on a group, in seconds of the run; `how`: complete, failed, lost or unfinished.

    `room`: total seconds for which it waited for room in the buffers.
    """

    group: int
    simulation: int
    begin: float
    end: float
    how: str
    room: float = 0.0


@dataclass(frozen=True)
class Mark:
    """An incident at a second of the run; `group`: of this group, if any."""

    time: float
    what: str
    group: int | None
    event: dict[str, Any]


class Clock:
    """Converts Unix times to seconds of the run, without the time between its starts."""

    def __init__(self) -> None:
        self._starts: list[tuple[float, float]] = []  # Unix time, second of the run
        self.last = 0.0
        self._last_unix = 0.0

    def start(self, unix: float) -> None:
        """Start or resume the run at this time."""
        self._starts.append((unix, self.last))

    def at(self, unix: float) -> float:
        """Return the second of the run at a time that is at most some seconds before the last one passed."""
        if not self._starts:
            self.start(unix)
        begin, second = self._starts[-1]
        seconds = max(0.0, second + unix - begin)
        self.last = max(self.last, seconds)
        return seconds

    def find(self, unix: float) -> float:
        """Return the second of the run at any time in it."""
        begun = [start for start in self._starts if start[0] <= unix] or self._starts[:1] or [(unix, 0.0)]
        return max(0.0, begun[-1][1] + unix - begun[-1][0])

    @property
    def resumes(self) -> list[float]:
        """Seconds of the run at which it was resumed."""
        return [second for _, second in self._starts[1:]]


@dataclass
class History:
    """The history of a run, in the order of time.

    Attributes
    ----------
    bars : list of Bar
        In the order of their starts.
    marks : list of Mark
    clock : Clock
        Of the run; `last` is its end, or the last known second.
    start : dict
        The last event `start`; empty if the ranks never joined.
    """

    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    start: dict[str, Any] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        """Number of groups, including those that replaced others."""
        return 1 + max((bar.group for bar in self.bars), default=-1)


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Read the events of a run, in order."""
    return Lines(path, EVENT).read()


def tell(events: Iterable[dict[str, Any]]) -> History:
    """Return the history that these events describe."""
    story = History()
    open_bars: dict[int, Bar] = {}
    last_of: dict[int, Bar] = {}  # by simulation

    def close(group: object, now: float, how: str) -> None:
        if isinstance(group, int) and (bar := open_bars.pop(group, None)) is not None:
            bar.end, bar.how = now, how

    for event in events:
        kind, group, simulation = event["event"], event.get("group"), event.get("simulation")
        if kind == "start":
            for other in list(open_bars):
                close(other, story.clock.last, "unfinished")
            story.clock.start(event["time"])
            story.start = event
        now = story.clock.at(event["time"])
        if kind == "dispatch" and isinstance(group, int) and isinstance(simulation, int):
            close(group, now, "complete")
            bar = open_bars[group] = last_of[simulation] = Bar(group, simulation, now, now, "unfinished")
            story.bars.append(bar)
        elif kind == "simulation_run" and isinstance(group, int) and (ran := open_bars.get(group)) is not None:
            ran.room = float(event.get("room_s") or 0.0) if ran.simulation == simulation else 0.0
        elif kind == "simulation_complete" and isinstance(simulation, int) and simulation in last_of:
            done = last_of[simulation]
            if open_bars.get(done.group) is done:
                close(done.group, now, "complete")
        elif kind == "simulation_cancelled" and isinstance(simulation, int) and simulation in last_of:
            done = last_of[simulation]
            if open_bars.get(done.group) is done:
                close(done.group, now, "complete")
        elif kind == "group_lost":
            close(group, now, "lost")
        elif kind == "group_left":
            close(group, now, "complete")
        elif kind in ("retry", "set_aside") and isinstance(simulation, int) and simulation in last_of:
            failed = last_of[simulation]
            close(failed.group, now, "failed")
            failed.how = "failed"
        if kind in _MARKS:
            story.marks.append(Mark(now, _MARKS[kind], group if isinstance(group, int) else None, event))
    for bar in open_bars.values():
        bar.end = story.clock.last
    return story
