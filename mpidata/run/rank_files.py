"""A run folder with the plan of the run: the files whose names depend on the plan."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from mpidata.run.folder import RunFolder
from mpidata.run.own_files import PRIVATE_MODE, write_text
from mpidata.run.plan import Plan

__all__ = ["PlannedRun"]


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """A run whose ranks are known.

    Parameters
    ----------
    run : RunFolder
    plan : Plan
    """

    run: RunFolder
    plan: Plan

    def group_log(self, group: int, rank_in_group: int) -> Path:
        """Output of a rank of a solver group, whether that started with the others or was spawned."""
        rank = self.plan.rank_of(group, rank_in_group)
        return self.run.logs / f"group-{group:04d}-solver-{rank_in_group}.log" if rank is None else self.log(rank)

    def group_exit(self, group: int, rank_in_group: int) -> Path:
        """Exit note of a rank of a solver group."""
        rank = self.plan.rank_of(group, rank_in_group)
        return self.run.exits / f"group-{group:04d}-{rank_in_group}" if rank is None else self.run.rank_exit(rank)

    def loader_log(self, loader: int) -> Path:
        """Output of a loader, whether it started with the others or was spawned."""
        rank = self.plan.rank_of_loader(loader)
        return self.run.logs / f"loader-{loader:04d}.log" if rank is None else self.log(rank)

    def loader_exit(self, loader: int) -> Path:
        """Exit note of a loader."""
        rank = self.plan.rank_of_loader(loader)
        return self.run.exits / f"loader-{loader:04d}" if rank is None else self.run.rank_exit(rank)

    def inference_log(self, number: int) -> Path:
        """Output of an inference rank, whether it started with the others or was spawned."""
        rank = self.plan.rank_of_inference(number)
        return self.run.logs / f"inference-{number:04d}.log" if rank is None else self.log(rank)

    def inference_exit(self, number: int) -> Path:
        """Exit note of an inference rank."""
        rank = self.plan.rank_of_inference(number)
        return self.run.exits / f"inference-{number:04d}" if rank is None else self.run.rank_exit(rank)

    def learner_log(self, number: int) -> Path:
        """Output of a learner, whether it started with the others or was spawned."""
        rank = self.plan.rank_of_learner(number)
        return self.run.logs / f"learner-{number:04d}.log" if rank is None else self.log(rank)

    def learner_exit(self, number: int) -> Path:
        """Exit note of a learner."""
        rank = self.plan.rank_of_learner(number)
        return self.run.exits / f"learner-{number:04d}" if rank is None else self.run.rank_exit(rank)

    def log_of(self, kind: str, number: int) -> Path:
        """Output of a `loader`, an `inference` rank or a `learner`."""
        return {"loader": self.loader_log, "inference": self.inference_log, "learner": self.learner_log}[kind](number)

    def exit_of(self, kind: str, number: int) -> Path:
        """Exit note of a `loader`, an `inference` rank or a `learner`."""
        found = {"loader": self.loader_exit, "inference": self.inference_exit, "learner": self.learner_exit}
        return found[kind](number)

    def log(self, rank: int) -> Path:
        """Output of the program of a rank."""
        role, index, rank_in_group = self.plan.role_of(rank)
        place = (
            "" if role == "scheduler" else f"-{index}-{rank_in_group}" if role in ("solver", "mate") else f"-{index}"
        )
        return self.run.logs / f"rank-{rank:04d}-{role}{place}.log"

    def write_plan(self) -> None:
        """Write the plan, after which the run can be started."""
        write_text(self.run.plan, self.plan.text(), PRIVATE_MODE)

    def write_notes(self, notes: Sequence[str]) -> None:
        """Write notes on the job file to the scheduler's log, before the scheduler starts."""
        if not notes:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.log(0), flags, 0o644), "w", encoding="utf-8") as log:
            log.writelines(f"mpidata: {note}\n" for note in notes)
