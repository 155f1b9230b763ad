"""The progress of datasets on loaders: each trainer reports it to the scheduler, which adds it up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = [
    "EXITS",
    "LEFT_EARLY",
    "PREFIX",
    "PUSHES",
    "RETIRES",
    "STEP_WAITS_S",
    "UNTRAINED",
    "WAITS_S",
    "Loaded",
    "Rate",
    "Report",
    "Tally",
    "summary_of",
]

PREFIX = "loaded."
"""Prefix of the names of reports about datasets on loaders."""

WAITS_S = f"{PREFIX}waits_s"
"""Seconds for which a trainer has waited for the others within an epoch; 0 when it continues."""

STEP_WAITS_S = f"{PREFIX}step_waits_s"
"""Seconds for which a trainer has waited for the others in a step, with `trainers.elastic`; 0 when it continues."""

LEFT_EARLY = f"{PREFIX}left_early"
"""Number of batches of a trainer that leaves the job within an epoch."""

UNTRAINED = f"{PREFIX}untrained"
"""Rows of that epoch that the trainer has not had, if trainers run apart and so do not wait for it."""

PUSHES = "served.pushes"
"""Number of a trainer's pushes to the parameter servers so far."""

EXITS = f"{PREFIX}exits"
"""Batches of a trainer whose script ended early with status 0, in a job with `trainers.elastic`."""

RETIRES = f"{PREFIX}retires"
"""A trainer leaves because the number of trainers is reduced."""

Report = Callable[[str, float], object]

_EVERY_S = 0.5
_RATE_OVER_S = 3.0
_ADDED = ("batches", "samples", "wait_s", "parts_read_again", "parts_without_rows", "untrained")
_READING = ("parts", "counted", "read")


class Tally:
    """Reports of a trainer on one dataset, at most twice per second.

    Parameters
    ----------
    report : callable
        Sends a name and a number to the scheduler.
    first : bool
        Whether this is the first trainer; only that one reports on parts.
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, report: Report, first: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._first, self._clock = report, first, clock
        self._sums = dict.fromkeys(_ADDED, 0.0)
        self._epoch = 0
        self._begun = False
        self._next = clock()
        self._read_again = 0

    def begin(self, epoch: int) -> None:
        """Report that an epoch starts."""
        self._epoch = epoch
        self._report(f"{PREFIX}epoch", epoch)

    def wait(self, seconds: float) -> None:
        """Add the time that the trainer has waited, except for batches."""
        self._sums["wait_s"] += seconds

    def batch(self, samples: int, waited_s: float) -> None:
        """Count a batch that is returned."""
        sums = self._sums
        sums["batches"] += 1
        sums["samples"] += samples
        sums["wait_s"] += waited_s
        if not self._begun:
            self._begun = True
            self._report(f"{PREFIX}first_batch_s", sums["wait_s"])
        if self._clock() >= self._next:
            self.flush()

    def end(self) -> None:
        """Report that the epoch has ended."""
        self.flush()
        self._report(f"{PREFIX}epoch_end", self._epoch)

    def flush(self) -> None:
        """Report the sums since the last report."""
        for name, value in self._sums.items():
            if value:
                self._report(PREFIX + name, value)
                self._sums[name] = 0.0
        self._next = self._clock() + _EVERY_S

    def parts(self, counted: int, read: int, of: int) -> None:
        """Report how many parts were counted and read, until the first batch is returned."""
        if self._first and not self._begun and self._clock() >= self._next:
            for name, value in zip(_READING, (of, counted, min(read, of)), strict=True):
                self._report(PREFIX + name, value)
            self._next = self._clock() + _EVERY_S

    def empty_parts(self, parts: int) -> None:
        """Add the number of parts without rows."""
        if self._first:
            self._sums["parts_without_rows"] += parts

    def read_again(self, parts: int) -> None:
        """Update the total number of parts to be read again because loaders were lost."""
        if self._first:
            self._sums["parts_read_again"] += parts - self._read_again
        self._read_again = parts


class Rate:
    """The rate of a count that is 0 at time 0."""

    def __init__(self) -> None:
        self._history: deque[tuple[float, int]] = deque([(0.0, 0)])

    def leave_out(self, count: int) -> None:
        """Exclude `count` items from the rate."""
        self._history = deque((then, before + count) for then, before in self._history)

    def at(self, seconds: float, count: int) -> float:
        """Return the growth per second over the last 3 seconds, given the count at a time."""
        history = self._history
        while len(history) > 1 and seconds - history[1][0] >= _RATE_OVER_S:
            history.popleft()
        then, before = history[0]
        history.append((seconds, count))
        return round((count - before) / (seconds - then), 3) if seconds > then else 0.0


class Loaded:
    """The reports of all trainers on their datasets.

    Parameters
    ----------
    trainers : int
        Number of trainers.
    """

    def __init__(self, trainers: int) -> None:
        self._trainers: list[dict[str, float]] = [dict.fromkeys(_ADDED, 0.0) for _ in range(trainers)]
        self._epoch = -1
        self._first_batch_s = 0.0
        self._reading: dict[str, int] = {}
        self._rate = Rate()

    def take(self, trainer: int, name: str, value: float) -> dict[str, Any] | None:
        """Add a report, its name without the prefix; returns the fields of the event if an epoch ended."""
        own = self._trainers[trainer]
        if name in _ADDED:
            own[name] += value
        elif name == "epoch":
            self._epoch = max(self._epoch, int(value))  # one of several datasets may restart
        elif name == "first_batch_s":
            self._first_batch_s, self._reading = max(self._first_batch_s, value), {}
        elif name in _READING:
            self._reading[name] = int(value)
        elif name == "epoch_end":
            sums = {"batches": int(own["batches"]), "samples": int(own["samples"]), "wait_s": round(own["wait_s"], 3)}
            return {"trainer": trainer, "epoch": int(value), **sums}
        return None

    def had(self, trainer: int, batches: int) -> None:
        """Set a trainer's number of batches to at least this one."""
        own = self._trainers[trainer]
        own["batches"] = max(own["batches"], batches)

    def summary(self) -> dict[str, Any]:
        """Return the sums since the start; empty if no epoch has started."""
        if self._epoch < 0:
            return {}
        return {
            "epoch": self._epoch,
            "batches": [int(own["batches"]) for own in self._trainers],
            "samples": self._samples(),
            "wait_s": [round(own["wait_s"], 3) for own in self._trainers],
            "first_batch_s": round(self._first_batch_s, 3),
            "parts_read_again": int(sum(own["parts_read_again"] for own in self._trainers)),
            "parts_without_rows": int(sum(own["parts_without_rows"] for own in self._trainers)),
            **({"untrained": rows} if (rows := int(sum(own["untrained"] for own in self._trainers))) else {}),
        }

    def metrics(self) -> dict[str, Any]:
        """Return the samples and the seconds of waiting of each trainer; empty if no epoch has started."""
        if self._epoch < 0:
            return {}
        return {
            "samples": [int(own["samples"]) for own in self._trainers],
            "wait_s": [round(own["wait_s"], 4) for own in self._trainers],
        }

    def progress(self, seconds: float) -> dict[str, Any]:
        """Return the sums and the rate, at a time in seconds since the start, and how many parts are read so far."""
        summary = self.summary()
        rate = {"per_second": self._rate.at(seconds, self._samples())} if summary else {}
        whole = len(self._reading) == len(_READING)  # the numbers arrive one by one
        return summary | rate | ({"reading": dict(self._reading)} if whole else {})

    def _samples(self) -> int:
        return int(sum(own["samples"] for own in self._trainers))


def summary_of(progress: dict[str, Any]) -> dict[str, Any]:
    """Return a summary of the last result of `Loaded.progress`."""
    return {key: value for key, value in progress.items() if key not in ("per_second", "reading")}
