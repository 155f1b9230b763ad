"""The plan's section on the record."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.run.folder import RunFolder

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["RecordSection", "record_of"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordSection:
    """The record; `record_path` is None if nothing is recorded."""

    record_path: Path | None = None
    record_every: int = 1
    record_when_slow: str = "slow_down"


def record_of(job: Job, run: Path) -> RecordSection:
    """Plan the record of a job that runs in a folder."""
    record = job.record
    if record is None:
        return RecordSection()
    path = RunFolder(run).record if record.path is None else Path(os.path.abspath(job.folder / record.path))
    return RecordSection(record_path=path, record_every=record.every, record_when_slow=record.when_slow)
