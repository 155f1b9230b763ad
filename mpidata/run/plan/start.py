"""The plan's section on the run, and on this start of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["StartSection", "start_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartSection:
    """The run, and this start of it.

    `attempt` counts the starts of the run folder from 1; `checkpoint` is the number of the checkpoint to start from, 0
    for none; `journal` is 1 if one is written; `replay` is the run folder of the run that is replayed, or None.
    """

    run: Path
    folder: Path
    seed: int
    fault_tolerance: str = "none"
    checkpoint: int = 0
    attempt: int = 1
    journal: int = 0
    replay: Path | None = None


def start_of(job: Job, run: Path, fault_tolerance: str, checkpoint: int, attempt: int) -> StartSection:
    """Plan a start of a run."""
    return StartSection(
        run=run,
        folder=job.folder,
        seed=job.seed,
        fault_tolerance=fault_tolerance,
        checkpoint=checkpoint,
        attempt=attempt,
        journal=int(job.journal and attempt == 1),  # no journal has the beginning of a resumed run
    )
