"""The inference ranks of a job: which answer solvers, what takes the place of a lost one, and when they may leave."""

from __future__ import annotations

from pathlib import Path

from mpidata.run.folder import RunFolder
from mpidata.run.planned import PlannedRun
from mpidata.scheduler.groups import Groups, Places
from mpidata.scheduler.loaders import Loaders

__all__ = ["InferenceRanks"]

_TRIES = 2  # further ones of a rank that cannot be started


class InferenceRanks(Loaders):
    """Keeps the inference ranks of a job at work: as loaders, but their work comes from the solvers.

    They leave when no solver is left, as those that are to stop may still wait for an answer.
    """

    kind = "inference"
    name = "inference rank"

    def leave_after(self, groups: Groups) -> None:
        """Let all go if no solver group is left."""
        if not groups.alive:
            self.leave()

    @property
    def _places(self) -> Places:
        plan = self._plan
        return Places(plan.inference, plan.inference_in_world, "split", "pool", _TRIES)

    @property
    def _can_spawn(self) -> bool:
        return self._messages.can_spawn_inference

    @property
    def _figures(self) -> dict[str, int]:
        return self._journal.figures.inference

    def _log_of(self, loader: int) -> Path:
        return PlannedRun(RunFolder(self._plan.run), self._plan).inference_log(loader)

    def _tell_serves(self, loader: int) -> None:
        self._messages.answers(loader)
