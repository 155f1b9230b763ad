"""The plan's section on when checkpoints are written."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["SavingSection", "saving_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavingSection:
    """The checkpoints; `checkpoint_every_s` is 0 if none are written periodically."""

    checkpoint_every_s: float = 0.0
    checkpoint_keep: int = 2
    checkpoint_within_s: float = 60.0


def saving_of(job: Job) -> SavingSection:
    """Plan the checkpoints of a job."""
    saving = job.saving
    return SavingSection(
        checkpoint_every_s=saving.every_s, checkpoint_keep=saving.keep, checkpoint_within_s=saving.within_s
    )
