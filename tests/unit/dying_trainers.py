"""How a trainer dies in a job of the real scheduler: by an event, usually with an exit note of its mpidata-rank."""

import json
from pathlib import Path
from typing import Any

from mpidata.native.event import Died
from mpidata.run.folder import RunFolder


def leave_note(run: Path, trainer: int, **note: Any) -> None:
    record = {"rank": 1 + trainer, "exit": None, "signal": None, "joined": True, "told": False} | note
    path = RunFolder(run).rank_exit(1 + trainer)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record))


def die(job: Any, trainer: int, after: float, **note: Any) -> None:
    job.event(Died, trainer, after=after, of_solver=False, rank=1 + trainer, rank_in_group=0)
    if note:
        leave_note(job.plan.run, trainer, **note)
