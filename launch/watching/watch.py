"""When to stop waiting for a job: it has failed, was asked to stop, or has lost a rank or host that it needs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.connections import Connections
from mpidata.launch.watching.ranks import LocalRanks
from mpidata.launch.watching.signals import Signals
from mpidata.run import deadlines
from mpidata.run.exits import read_exit_note
from mpidata.run.own_files import opener

__all__ = ["Watch"]

_FIND_EVERY_S = 0.5
_HOST_EVERY_S = 1.0


class Watch:
    """Watches the files and processes of an attempt.

    Parameters
    ----------
    attempt : Attempt
        The running attempt.
    launcher : int
        Its process id.
    signals : Signals
        Entered by the caller.
    silence_s : float, optional
        For a job on several hosts: seconds without acknowledgement of the launcher's data after which a host is lost.
    clock : callable, optional
        Returns seconds.

    Attributes
    ----------
    vanished : int or None
        A rank without which the job cannot continue, and that ended without an exit note: it was killed with its
        mpidata-rank.
    lost_host : str or None
        A host that does not answer, if its loss has ended the job.
    asked : bool
        Whether the job was asked to end.

    Notes
    -----
    For one thread. Except for the files, it sees only this machine.
    """

    def __init__(
        self,
        attempt: Attempt,
        launcher: int,
        signals: Signals,
        silence_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.vanished: int | None = None
        self.lost_host: str | None = None
        self.asked = False
        self._attempt = attempt
        self._signals = signals
        self._clock = clock
        self._end_by = float("inf")
        self._seen: set[str] = set()
        self._died: dict[int, float] = {}  # trainers, and the time by which the scheduler must have reacted
        self._next_find = clock()
        self._ranks = LocalRanks(attempt.run.path, launcher)
        self._connections = Connections(launcher, silence_s) if silence_s is not None else None
        self._next_host = clock()

    def __enter__(self) -> Watch:
        """Do nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching the processes."""
        self._ranks.close()

    def is_due(self) -> bool:
        """Whether to end the rest of the job now. To be called several times a second."""
        now, joined = self._clock(), self._attempt.joined()
        if self._attempt.run.is_removed:
            return True
        if self._signals.ends_at_once or (self._signals.asks_to_stop and not self._may_stop(now, joined)):
            return True
        if now >= self._next_find:  # for the last time when all have joined
            self._next_find = float("inf") if joined else now + _FIND_EVERY_S
            self._ranks.find()
            if not joined and self._ranks.are_all_dead():
                return True
        self._ranks.look()
        if self._has_lost_host(now):
            return True
        summary = self._attempt.run.summary
        if summary.exists():
            self._after_summary(summary, now)
        elif joined:
            self._look_for_deaths(now)
        elif self._cannot_join():
            return True
        return now > self._end_by

    def _has_lost_host(self, now: float) -> bool:
        if self._connections is not None and now >= self._next_host:
            self._next_host = now + _HOST_EVERY_S
            self.lost_host = self._connections.lost_host()
            if self.lost_host is not None:
                self._fail(now)
        return self.lost_host is not None

    def _cannot_join(self) -> bool:
        """Whether a rank has died before all had joined: the others would wait for it forever."""
        if any(not ended.told for ended in self._attempt.bad_ends()):
            return not self._attempt.joined()  # asked again: all may have joined, and it have died, since then
        self.vanished = min(filter(self._has_no_note, self._ranks.gone), default=None)
        if self.vanished is None:
            self.vanished = self._ranks.missing(self._attempt.plan.world)
        if self._attempt.joined():
            self.vanished = None
        return self.vanished is not None

    def _may_stop(self, now: float, joined: bool) -> bool:
        """Ask the job to stop; False if it cannot, because it has not started."""
        if not joined:
            return False
        if not self.asked:
            self.asked = True
            self._limit(now + self._attempt.plan.checkpoint_within_s + deadlines.LATE_S)
            _write(self._attempt.run.stop, self._signals.request.text())
        return True

    def _after_summary(self, summary: Path, now: float) -> None:
        status, interrupted = _status(summary), self.asked and self._signals.request.interrupt
        if self._first("summary"):
            self._end_by = float("inf") if status == "complete" and not interrupted else self._end_by
            # Programs of a job that is complete, or that its scripts have stopped, may still run, to save a model.
            if status == "failed":
                self._fail(now, deadlines.FAILED_S)
            elif status == "stopped" and self.asked and not interrupted:
                self._fail(now)
        if interrupted and self._ranks.gone.issuperset(self._attempt.plan.scripts) and self._first("scripts"):
            self._fail(now)
        if len(self._ranks.gone) == self._attempt.plan.world and self._first("empty"):
            self._limit(now + deadlines.EMPTY_S)

    def _look_for_deaths(self, now: float) -> None:
        """Notice that the scheduler has died, or trainers whose death it has not acted on; both end the job."""
        plan, gone = self._attempt.plan, self._ranks.gone
        if (0 in gone or not self._has_no_note(0)) and self._first("scheduler"):
            self.vanished = 0 if self._has_no_note(0) else None
            self._fail(now)
        for rank in plan.scripts:
            ended = read_exit_note(self._attempt.run.rank_exit(rank))
            if ended is None or ended.told:
                continue
            by = self._died.setdefault(rank, now + deadlines.GRACE_S)
            if now > by and rank not in self._attempt.lost_trainers():
                self._limit(by)

    def _has_no_note(self, rank: int) -> bool:
        return not self._attempt.run.rank_exit(rank).exists()

    def _fail(self, now: float, grace_s: float | None = None) -> None:
        _write(self._attempt.run.over, "over")
        self._limit(now + (deadlines.GRACE_S if grace_s is None else grace_s))

    def _first(self, what: str) -> bool:
        first = what not in self._seen
        self._seen.add(what)
        return first

    def _limit(self, by: float) -> None:
        self._end_by = min(self._end_by, by)


def _status(summary: Path) -> str:
    """How the job ended; for the ranks it is complete if they have left in order."""
    try:
        told = json.loads(summary.read_text(encoding="utf-8"))
        return "complete" if told.get("in_order") is True else str(told["status"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "failed"


def _write(path: Path, text: str) -> None:
    """Leave a request for the ranks; if the disk is full, they are ended without it."""
    with contextlib.suppress(OSError), open(path, "x", encoding="utf-8", opener=opener) as file:
        file.write(text + "\n")
