"""A run folder filled as by a run, and how that run ended."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

from launch_job import make_plan

from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.outcome import settle
from mpidata.launch.watching.supervise import LauncherEnd
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["EndedRun"]


class EndedRun:
    """A run folder filled as by a run."""

    def __init__(self, folder: Path) -> None:
        self.plan: Plan = make_plan(folder, {})
        self.run = RunFolder(self.plan.run)
        self.attempt = Attempt.of(self.run, self.plan)
        self._ended = time.time()

    def fault_tolerant(self) -> None:
        """Mark all ranks as joined, in a job that survives the death of a solver."""
        self.attempt = dataclasses.replace(self.attempt, plan=dataclasses.replace(self.plan, fault_tolerance="ulfm"))
        self.run.events.write_text("start\n")

    def joined(self, ago_s: float) -> None:
        """Write the scheduler's first event."""
        self.run.events.write_text(json.dumps({"time": time.time() - ago_s, "event": "start"}) + "\n")

    def record(self, rank: int, ago_s: float, **more: Any) -> None:
        path = self.run.exits / f"rank-{rank:04d}"
        values = {"rank": rank, "exit": None, "signal": None, "told": False, "error": None, "joined": True, **more}
        path.write_text(json.dumps(values))
        self.age(path, ago_s)

    def summary(self, status: str, error: str | None = None, ago_s: float = 10) -> None:
        self.run.summary.write_text(json.dumps({"status": status, "error": error}))
        self.age(self.run.summary, ago_s)

    def age(self, path: Path, ago_s: float) -> None:
        """Let a file be this much older than the end of the run."""
        os.utime(path, (self._ended - ago_s, self._ended - ago_s))

    def settle(
        self, status: int = 0, stopped_by: int | None = None, by_batch_system: str | None = None
    ) -> tuple[int, str, str]:
        outcome = settle(self.attempt, LauncherEnd(status, stopped_by, by_batch_system=by_batch_system), 3.0)
        assert json.loads(self.run.summary.read_text()) == outcome.summary
        self.log, self.died, self.early = outcome.log, outcome.died, outcome.early
        return outcome.exit_status, outcome.summary["status"], outcome.summary.get("error") or ""
