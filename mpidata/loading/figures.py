"""How far datasets on loaders are: each trainer reports it to the scheduler, which adds it up."""

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
"""What the names of reports begin with that are about datasets on loaders."""

WAITS_S = f"{PREFIX}waits_s"
"""For how long a trainer has waited for the others, in the middle of an epoch; 0 when it goes on."""

STEP_WAITS_S = f"{PREFIX}step_waits_s"
"""For how long a trainer has waited for the others in a step, in a job with `trainers.elastic`; 0 when it goes on."""

LEFT_EARLY = f"{PREFIX}left_early"
"""Batches of a trainer that leaves the job in the middle of an epoch."""

UNTRAINED = f"{PREFIX}untrained"
"""Rows of that epoch which it has not had, where trainers run apart: nobody waits for it."""

PUSHES = "served.pushes"
"""Pushes to the parameter servers that a trainer has made so far."""

EXITS = f"{PREFIX}exits"
"""A trainer's script has ended in the middle, with status 0, in a job with `trainers.elastic`; its batches."""

RETIRES = f"{PREFIX}retires"
"""A trainer leaves as fewer are to train."""

Report = Callable[[str, float], object]

_EVERY_S = 0.5
_RATE_OVER_S = 3.0
_ADDED = ("batches", "samples", "wait_s", "parts_read_again", "parts_without_rows", "untrained")
_READING = ("parts", "counted", "read")


class Tally:
    """What a trainer reports of one dataset, twice a second at most.

    Parameters
    ----------
    report : callable
        Takes a name and a number to the scheduler.
    first : bool
        Whether this is the first trainer, which alone tells of the parts.
    clock : callable, optional
        Gives seconds.
    """

    def __init__(self, report: Report, first: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._first, self._clock = report, first, clock
        self._sums = dict.fromkeys(_ADDED, 0.0)
        self._epoch = 0
        self._begun = False
        self._next = clock()
        self._read_again = 0

    def begin(self, epoch: int) -> None:
        """Say that an epoch begins."""
        self._epoch = epoch
        self._report(f"{PREFIX}epoch", epoch)

    def wait(self, seconds: float) -> None:
        """Say how long the trainer has waited, but for batches."""
        self._sums["wait_s"] += seconds

    def batch(self, samples: int, waited_s: float) -> None:
        """Say that a batch is given out."""
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
        """Say that the epoch has ended."""
        self.flush()
        self._report(f"{PREFIX}epoch_end", self._epoch)

    def flush(self) -> None:
        """Report what was not yet."""
        for name, value in self._sums.items():
            if value:
                self._report(PREFIX + name, value)
                self._sums[name] = 0.0
        self._next = self._clock() + _EVERY_S

    def parts(self, counted: int, read: int, of: int) -> None:
        """Say how many parts were counted and read, until the first batch is given out."""
        if self._first and not self._begun and self._clock() >= self._next:
            for name, value in zip(_READING, (of, counted, min(read, of)), strict=True):
                self._report(PREFIX + name, value)
            self._next = self._clock() + _EVERY_S

    def empty_parts(self, parts: int) -> None:
        """Say how many parts of a dataset have no rows."""
        if self._first:
            self._sums["parts_without_rows"] += parts

    def read_again(self, parts: int) -> None:
        """Say how many parts in all were to be read again, as loaders were lost."""
        if self._first:
            self._sums["parts_read_again"] += parts - self._read_again
        self._read_again = parts


class Rate:
    """Of a count that begins with 0 at the time 0."""

    def __init__(self) -> None:
        self._history: deque[tuple[float, int]] = deque([(0.0, 0)])

    def leave_out(self, count: int) -> None:
        """Have the count begin with so many more."""
        self._history = deque((then, before + count) for then, before in self._history)

    def at(self, seconds: float, count: int) -> float:
        """Take the count at a time; gives the growth per second, over the last 3 seconds."""
        history = self._history
        while len(history) > 1 and seconds - history[1][0] >= _RATE_OVER_S:
            history.popleft()
        then, before = history[0]
        history.append((seconds, count))
        return round((count - before) / (seconds - then), 3) if seconds > then else 0.0


class Loaded:
    """What all trainers have reported of their datasets.

    Parameters
    ----------
    trainers : int
        How many there are.
    """

    def __init__(self, trainers: int) -> None:
        self._trainers: list[dict[str, float]] = [dict.fromkeys(_ADDED, 0.0) for _ in range(trainers)]
        self._epoch = -1
        self._first_batch_s = 0.0
        self._reading: dict[str, int] = {}
        self._rate = Rate()

    def take(self, trainer: int, name: str, value: float) -> dict[str, Any] | None:
        """Take a report, its name without the prefix; gives what the event of an ended epoch is to say."""
        own = self._trainers[trainer]
        if name in _ADDED:
            own[name] += value
        elif name == "epoch":
            self._epoch = max(self._epoch, int(value))  # of several datasets, one may be begun anew
        elif name == "first_batch_s":
            self._first_batch_s, self._reading = max(self._first_batch_s, value), {}
        elif name in _READING:
            self._reading[name] = int(value)
        elif name == "epoch_end":
            sums = {"batches": int(own["batches"]), "samples": int(own["samples"]), "wait_s": round(own["wait_s"], 3)}
            return {"trainer": trainer, "epoch": int(value), **sums}
        return None

    def had(self, trainer: int, batches: int) -> None:
        """Take in that a trainer had at least so many."""
        own = self._trainers[trainer]
        own["batches"] = max(own["batches"], batches)

    def summary(self) -> dict[str, Any]:
        """Give the sums since the start; empty where no epoch has begun."""
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
        """Give the samples and the seconds of waiting of each trainer; empty where no epoch has begun."""
        if self._epoch < 0:
            return {}
        return {
            "samples": [int(own["samples"]) for own in self._trainers],
            "wait_s": [round(own["wait_s"], 4) for own in self._trainers],
        }

    def progress(self, seconds: float) -> dict[str, Any]:
        """Give the sums at a time, in seconds since the start, the rate, and which parts are read before the rest."""
        summary = self.summary()
        rate = {"per_second": self._rate.at(seconds, self._samples())} if summary else {}
        whole = len(self._reading) == len(_READING)  # they come one by one
        return summary | rate | ({"reading": dict(self._reading)} if whole else {})

    def _samples(self) -> int:
        return int(sum(own["samples"] for own in self._trainers))


def summary_of(progress: dict[str, Any]) -> dict[str, Any]:
    """Make a summary of what `Loaded.progress` gave last."""
    return {key: value for key, value in progress.items() if key not in ("per_second", "reading")}
