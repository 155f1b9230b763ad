"""What a plan says of the rank that runs the sampler."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["LearnerSection", "learner_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerSection:
    """The rank that runs the sampler; `learner` is 1 if there is one, else 0."""

    learner: int = 0
    learner_spares: int = 0

    @property
    def learners_in_world(self) -> int:
        """Number of learners that start with the world, spares included."""
        return self.learner + self.learner_spares


def learner_of(job: Job) -> LearnerSection:
    """Plan the learner of a job."""
    parameters = job.parameters
    if not parameters.learner_rank:
        return LearnerSection()
    return LearnerSection(learner=1, learner_spares=parameters.learner_spares)
