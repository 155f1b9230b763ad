"""The file metrics.jsonl: once a second how far the job is, and how its trainers and groups spend their time."""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpidata.native.event import Closed, Usage
from mpidata.run.event_log import as_json

__all__ = ["GroupTimes", "Metrics"]

_SLOWEST = 16
_EVERY = ((3600.0, 1.0), (86400.0, 10.0))  # up to so many seconds, every so many; ...
_LAST_EVERY = 60.0  # ... and then


class GroupTimes:
    """How the groups have spent their time, by the simulations that they have closed.

    Attributes
    ----------
    sums : dict
        In seconds, over all groups: `compute_s`, `room_s`, `next_s`, `start_s`; and how many `steps` and `simulations`.
    """

    def __init__(self) -> None:
        self.sums: dict[str, float] = dict.fromkeys(("compute_s", "room_s", "next_s", "start_s"), 0.0)
        self.sums |= {"steps": 0, "simulations": 0}
        self._by_group: dict[int, tuple[int, float]] = {}  # steps, seconds of them
        self._usage: dict[int, Usage] = {}

    @property
    def usage(self) -> list[Usage]:
        """Of rank 0 of each group, as of its last simulation."""
        return list(self._usage.values())

    def add(self, group: int, event: Closed) -> dict[str, float]:
        """Take in how a group has spent its time on a simulation; returns that, in seconds."""
        self._usage[group] = event.usage
        parts = {"room_s": event.room_us, "next_s": event.next_us, "start_s": event.start_us}
        spent = {"compute_s": event.total_us - sum(parts.values()), **parts}
        seconds = {name: round(max(0, microseconds) / 1e6, 4) for name, microseconds in spent.items()}
        for name, value in seconds.items():
            self.sums[name] = round(self.sums[name] + value, 4)
        self.sums["steps"] += event.steps
        self.sums["simulations"] += 1
        steps, before = self._by_group.get(group, (0, 0.0))
        later = max(0, event.steps - 1)  # the first belongs to the start
        self._by_group[group] = steps + later, before + seconds["compute_s"]
        return seconds

    def figures(self) -> dict[str, Any]:
        """Give the sums, seconds a step by quantile (0, 25, 50, 75, 100 %), and the slowest groups with theirs."""
        each = {group: seconds / steps for group, (steps, seconds) in self._by_group.items() if steps}
        ordered = sorted(each.values())
        quantiles = [round(ordered[i * (len(ordered) - 1) // 4], 6) for i in range(5)] if ordered else []
        slowest = heapq.nlargest(_SLOWEST, each.items(), key=lambda item: item[1])
        return {**self.sums, "step_s": quantiles, "slowest": [[group, round(step, 6)] for group, step in slowest]}


class Metrics:
    """Appends a line to metrics.jsonl when one is due: every second for an hour, every 10 s for a day, then every 60 s.

    Parameters
    ----------
    path : Path
        The file.
    clock : callable, optional
        Gives the unix time in seconds.

    Notes
    -----
    For one thread. Nothing raises OSError: lines that cannot be written are lost.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._next = 0.0

    def is_due(self, seconds: float) -> bool:
        """Whether a line is due, so many seconds after the start."""
        if seconds < self._next:
            return False
        every = next((every for until, every in _EVERY if seconds < until), _LAST_EVERY)
        self._next = seconds + every
        return True

    def write(self, figures: dict[str, Any]) -> None:
        """Add a line."""
        line = as_json({"time": round(self._clock(), 3), **figures}) + "\n"
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(line.encode(errors="replace"))
