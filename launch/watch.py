"""When to wait no longer for a job: it has failed, has been asked to stop, or what should end it is gone."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from mpidata.exits import read_record
from mpidata.launch.attempt import Attempt
from mpidata.launch.cleanup import ranks_of
from mpidata.launch.signals import Signals

__all__ = ["Watch"]

_GRACE_S = 10.0  # from the end of a rank on which all depends, or of a stop, to the end of all ranks
_FAILED_S = 2.0  # from the summary of a job that has failed: the scheduler has waited for who may still leave in order
_LATE_S = 3.0  # for the scheduler to write the summary of a job that took all the time it had
_EMPTY_S = 5.0  # for the launcher to end when all ranks have
_SCAN_EVERY_S = 1.0


class Watch:
    """Looks at the files and processes of an attempt.

    Parameters
    ----------
    attempt : Attempt
        That goes on.
    signals : Signals
        Entered by the caller.
    clock : callable, optional
        Gives seconds.

    Attributes
    ----------
    scheduler_gone : bool
        Whether rank 0 has ended without a record and without a summary: it was killed with its mpidata-rank.
    asked : bool
        Whether the job was asked to write a checkpoint and end.

    Notes
    -----
    For one thread. What it finds is limited to this machine, but for the files.
    """

    def __init__(self, attempt: Attempt, signals: Signals, clock: Callable[[], float] = time.monotonic) -> None:
        self.scheduler_gone = False
        self.asked = False
        self._attempt = attempt
        self._signals = signals
        self._clock = clock
        self._end_by = float("inf")
        self._seen: set[str] = set()
        self._next_scan = clock()
        self._ranks = 0
        self._scheduler: int | None = None

    def __enter__(self) -> Watch:
        """Do nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the scheduler's process."""
        if self._scheduler is not None:
            os.close(self._scheduler)

    def is_due(self) -> bool:
        """Whether to end what is left of the job now. To be called some times a second."""
        now, joined = self._clock(), self._attempt.joined()
        if self._signals.ends_at_once or (self._signals.asks_for_checkpoint and not self._may_stop(now, joined)):
            return True
        summary = self._attempt.run.summary
        if summary.exists():
            self._after_summary(summary, now)
        elif not joined and any(not record.told for record in self._attempt.records()):
            return True  # those that have not joined would be waited for without end
        else:
            self._look_for_deaths(now)
        self._scan(now, joined)
        return now > self._end_by

    def _may_stop(self, now: float, joined: bool) -> bool:
        """Ask the job to stop; False where it cannot, as it has not begun."""
        if not joined:
            return False
        if not self.asked:
            self.asked = True
            self._limit(now + self._attempt.plan.checkpoint_within_s + _LATE_S)
            _write(self._attempt.run.stop, self._signals.name)
        return True

    def _after_summary(self, summary: Path, now: float) -> None:
        status = _status(summary)
        if self._first("summary"):
            self._end_by = float("inf") if status == "complete" else self._end_by
            # Programs of a job that is complete, or that its scripts have stopped, may work on: to save a model, say.
            if status == "failed":
                self._fail(now, _FAILED_S)
            elif status == "stopped" and self.asked:
                self._fail(now)
        if self._ranks == 0 and "ranks" in self._seen and self._first("empty"):
            self._limit(now + _EMPTY_S)

    def _look_for_deaths(self, now: float) -> None:
        """Notice that the scheduler has died, which ends the job, or a trainer, which the scheduler should notice."""
        exits, plan = self._attempt.run.exits, self._attempt.plan
        if self._scheduler is not None and select.select([self._scheduler], [], [], 0)[0] and self._first("gone"):
            self.scheduler_gone = True
            self._fail(now)
        if (exits / "rank-0000").exists() and self._first("scheduler"):
            self._fail(now)
        for rank in range(1, 1 + plan.trainers):
            record = read_record(exits / f"rank-{rank:04d}")
            if record is not None and not record.told and self._first("trainer"):
                self._limit(now + _GRACE_S)

    def _scan(self, now: float, joined: bool) -> None:
        """Find the ranks of this machine: until all have joined, and again when the job is over."""
        over = "summary" in self._seen
        if now < self._next_scan or (joined and not over and "joined" in self._seen):
            return
        self._next_scan = now + _SCAN_EVERY_S
        ranks, scheduler = ranks_of(self._attempt.run.path)
        self._ranks = len(ranks)
        if joined:
            self._first("joined")
        if len(ranks) >= self._attempt.plan.world:
            self._first("ranks")  # all of them are here, so that none is left when none is left here
        if scheduler is not None and self._scheduler is None:
            with contextlib.suppress(OSError, AttributeError):  # an old kernel or Python
                self._scheduler = os.pidfd_open(scheduler)

    def _fail(self, now: float, grace_s: float | None = None) -> None:
        _write(self._attempt.run.over, "over")
        self._limit(now + (_GRACE_S if grace_s is None else grace_s))

    def _first(self, what: str) -> bool:
        first = what not in self._seen
        self._seen.add(what)
        return first

    def _limit(self, by: float) -> None:
        self._end_by = min(self._end_by, by)


def _status(summary: Path) -> str:
    try:
        return str(json.loads(summary.read_text(encoding="utf-8"))["status"])
    except (OSError, ValueError, KeyError, TypeError):
        return "failed"


def _write(path: Path, text: str) -> None:
    """Leave word for the ranks; where the disk is full, they are ended without it."""
    with contextlib.suppress(OSError), open(path, "x", encoding="utf-8") as file:
        file.write(text + "\n")
