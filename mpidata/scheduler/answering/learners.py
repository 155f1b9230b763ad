"""The learner of a job: which rank runs the sampler, what replaces a lost one, and when it may leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.deaths.lost_groups import Cause
from mpidata.scheduler.figures.run_output import RunOutput
from mpidata.scheduler.groups import Places
from mpidata.scheduler.loaders import Loaders
from mpidata.scheduler.messages import Messages

if TYPE_CHECKING:
    from mpidata.sampling.learner.remote_sampler import RemoteSampling

__all__ = ["LearnerRanks"]

_TRIES = 2  # retries of a rank that cannot be started, or is lost at the same call


class LearnerRanks(Loaders):
    """Manages the learner like loaders, but there is only one, and its work comes from the sampler's thread.

    Parameters
    ----------
    plan, messages, output
        As for Loaders.
    sampling : RemoteSampling or None
        Sends calls to the learner; None if there is no learner.
    """

    kind = "learner"
    name = "learner"

    def __init__(self, plan: Plan, messages: Messages, output: RunOutput, sampling: RemoteSampling | None) -> None:
        super().__init__(plan, messages, output)
        self._sampling = sampling

    def died(self, loader: int, rank_in_group: int, now: float) -> None:
        """Declare a learner that has died lost; the next one continues where it stopped."""
        if self._sampling is not None:
            self._sampling.lost(loader)
        super().died(loader, rank_in_group, now)

    @property
    def _places(self) -> Places:
        plan = self._plan
        return Places(plan.learner, plan.learners_in_world, "split", "pool", _TRIES)

    @property
    def _can_spawn(self) -> bool:
        return self._messages.can_spawn_inference

    @property
    def _figures(self) -> dict[str, int]:
        return self._output.figures.learner

    def _log_of(self, loader: int) -> Path:
        return PlannedRun(RunFolder(self._plan.run), self._plan).learner_log(loader)

    def _tell_serves(self, loader: int) -> None:
        self._messages.teaches(loader)
        if self._sampling is not None:
            self._sampling.serves(loader)

    def _look_for_any(self, sentence: str, loader: int) -> None:
        if self._sampling is None or self._sampling.needed:
            super()._look_for_any(sentence, loader)

    def _blame(self, loader: int, cause: Cause) -> None:
        """Count the learners that were lost at the same call of the sampler; after the last try the job fails."""
        if not cause.item or self.leaving:
            return
        self._tries = {cause.item: self._tries.get(cause.item, 0) + 1}
        if self._tries[cause.item] > _TRIES:
            call = cause.item.split()[0]
            self._fail(
                f"{_TRIES + 1} learners were lost at the same call of the sampler, '{call}'. Learner {loader}, the "
                f"last one, {cause.sentence}.",
                loader,
            )
