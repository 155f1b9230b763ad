"""The plan's section on the inference ranks."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["InferenceSection", "inference_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferenceSection:
    """The inference ranks; `inference` is 0 if there are none."""

    inference: int = 0
    inference_spares: int = 0
    inference_timeout_s: float = 60.0
    inference_start_timeout_s: float = 600.0

    @property
    def inference_in_world(self) -> int:
        """Number of inference ranks that start with the world, including spares."""
        return self.inference + self.inference_spares


def inference_of(job: Job) -> InferenceSection:
    """Plan the inference ranks of a job."""
    inference = job.inference
    if inference is None:
        return InferenceSection()
    return InferenceSection(
        inference=inference.ranks,
        inference_spares=inference.spares,
        inference_timeout_s=inference.timeout_s,
        inference_start_timeout_s=inference.start_timeout_s,
    )
