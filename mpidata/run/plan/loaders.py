"""The plan's section on the loaders."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["LoadersSection", "loaders_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadersSection:
    """The loaders; `loaders` is 0 if there are none."""

    loaders: int = 0
    loader_spares: int = 0
    loader_start: str = "split"
    loader_retries: int = 2
    loader_timeout_s: float = 60.0
    loader_start_timeout_s: float = 600.0
    loader_tolerate: int = 0

    @property
    def loaders_in_world(self) -> int:
        """Number of loaders that start with the world, including spares."""
        return self.loaders + self.loader_spares if self.loader_start == "split" else 0


def loaders_of(job: Job) -> LoadersSection:
    """Plan the loaders of a job."""
    loaders = job.loaders
    if loaders is None:
        return LoadersSection()
    return LoadersSection(
        loaders=loaders.ranks,
        loader_spares=loaders.spares,
        loader_start=loaders.start,
        loader_retries=loaders.retries,
        loader_timeout_s=loaders.timeout_s,
        loader_start_timeout_s=loaders.start_timeout_s,
        loader_tolerate=loaders.tolerate,
    )
