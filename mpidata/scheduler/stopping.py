"""A stop from outside: a checkpoint, then the end of the job, within a limit of time."""

from __future__ import annotations

import signal

from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.scheduler.coordinator import Coordinator

__all__ = ["OutsideStop"]

_LOOK_S = 0.5


class OutsideStop:
    """Notices a signal, or the file `stop` that `mpidata run` writes into the run folder when it gets one.

    SIGINT ends the job at once; SIGTERM and SIGUSR1 after a checkpoint, for which there is time until
    `plan.checkpoint_within_s` is nearly over.

    Parameters
    ----------
    plan : Plan
        Of the job.
    checkpoints : Coordinator
        Takes the checkpoint.

    Attributes
    ----------
    by : float
        When the job must have ended, of the clock that `tick` is given; infinity while there is no stop.

    Notes
    -----
    For one thread; only `interrupt` may be called from a signal handler.
    """

    def __init__(self, plan: Plan, checkpoints: Coordinator) -> None:
        self.by = float("inf")
        self._plan = plan
        self._checkpoints = checkpoints
        self._file = RunFolder(plan.run).stop
        self._signal = 0
        self._name = ""
        self._before = 0
        self._next_look = 0.0

    @property
    def at_once(self) -> int:
        """Number of a signal that ends the job at once; 0 without one."""
        return self._signal if self._signal == signal.SIGINT else 0

    @property
    def by_terminate(self) -> bool:
        """Whether SIGTERM has come to this process: what sends it there tells all ranks to end, as batch systems do."""
        return self._signal == signal.SIGTERM

    def interrupt(self, number: int, frame: object = None) -> None:
        """Take a signal. To be installed as its handler."""
        self._signal = number

    def tick(self, now: float) -> str:
        """Look for a stop; returns the reason for which the ranks are to leave now, else "". To be called often."""
        if not self._name:
            self._name = self._look(now)
            if not self._name:
                return ""
            self.by = now + self._plan.checkpoint_within_s
            self._before = self._checkpoints.last_valid
            self._checkpoints.want(now)
            return ""
        if self._checkpoints.last_valid > self._before:
            written = self._checkpoints
            return f"{self._name}: checkpoint {written.last_valid} of batch {written.last_batch} was written"
        if not self._checkpoints.busy:
            return f"{self._name}: no checkpoint was written, as {self._checkpoints.failure or 'there was no time'}"
        if now >= self.by - deadlines.LEAVE_SHARE * self._plan.checkpoint_within_s:
            return f"{self._name}: no checkpoint could be written in time"
        return ""

    def _look(self, now: float) -> str:
        if self._signal:
            return signal.Signals(self._signal).name
        if now < self._next_look:
            return ""
        self._next_look = now + _LOOK_S
        try:
            return self._file.read_text(encoding="utf-8").strip() or "SIGTERM"
        except OSError:
            return ""
