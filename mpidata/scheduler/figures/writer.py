"""The file metrics.jsonl: each second, the job's progress and how its trainers and groups spend their time."""

from __future__ import annotations

import contextlib
import heapq
import os
import time
from collections.abc import Callable
from operator import add
from pathlib import Path
from typing import Any

from mpidata.native.event import Closed, Usage
from mpidata.run.event_log import as_json

__all__ = ["TIMES", "GroupTimes", "Metrics"]

TIMES = ("compute_s", "room_s", "next_s", "start_s")
"""What a group spends its time on, by the names of its seconds."""

_SLOWEST = 16
_EVERY = ((3600.0, 1.0), (86400.0, 10.0))  # end of the period and interval, in seconds; ...
_LAST_EVERY = 60.0  # ... and the interval after these


class GroupTimes:
    """How the groups have spent their time, by the simulations that they have closed."""

    def __init__(self) -> None:
        self._spent_us = [0] * len(TIMES)  # over all groups
        self._steps = self._simulations = 0
        self._by_group: dict[int, tuple[int, int]] = {}  # steps, and their microseconds
        self._usage: dict[int, Usage] = {}

    @property
    def usage(self) -> list[Usage]:
        """Usage of rank 0 of each group, as of its last simulation."""
        return list(self._usage.values())

    def add(self, group: int, event: Closed) -> list[float]:
        """Add how a group has spent its time on a simulation; returns that, in seconds, in the order of TIMES."""
        self._usage[group] = event.usage
        compute_us = max(0, event.total_us - event.room_us - event.next_us - event.start_us)
        spent_us = compute_us, event.room_us, event.next_us, event.start_us
        self._spent_us = list(map(add, self._spent_us, spent_us))
        self._steps += event.steps
        self._simulations += 1
        steps, before_us = self._by_group.get(group, (0, 0))
        later = max(0, event.steps - 1)  # the first step belongs to the start
        self._by_group[group] = steps + later, before_us + compute_us
        return [microseconds / 1e6 for microseconds in spent_us]

    def figures(self) -> dict[str, Any]:
        """Return the sums, seconds per step by quantile (0, 25, 50, 75, 100 %), and the slowest groups with theirs."""
        each = {group: spent_us / 1e6 / steps for group, (steps, spent_us) in self._by_group.items() if steps}
        ordered = sorted(each.values())
        quantiles = [round(ordered[i * (len(ordered) - 1) // 4], 6) for i in range(5)] if ordered else []
        slowest = heapq.nlargest(_SLOWEST, each.items(), key=lambda item: item[1])
        sums = {name: round(spent_us / 1e6, 4) for name, spent_us in zip(TIMES, self._spent_us, strict=True)}
        return {
            **sums,
            "steps": self._steps,
            "simulations": self._simulations,
            "step_s": quantiles,
            "slowest": [[group, round(step, 6)] for group, step in slowest],
        }


class Metrics:
    """Appends a line to metrics.jsonl when one is due: every second for an hour, every 10 s for a day, then every 60 s.

    Parameters
    ----------
    path : Path
        The file.
    clock : callable, optional
        Returns the Unix time in seconds.

    Notes
    -----
    Not thread-safe. No method raises OSError: lines that cannot be written are lost.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._next = 0.0

    def is_due(self, seconds: float) -> bool:
        """Whether a line is due `seconds` after the start."""
        if seconds < self._next:
            return False
        every = next((every for until, every in _EVERY if seconds < until), _LAST_EVERY)
        self._next = seconds + every
        return True

    def write(self, figures: dict[str, Any]) -> None:
        """Append a line."""
        line = as_json({"time": round(self._clock(), 3), **figures}) + "\n"
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(line.encode(errors="replace"))
