"""One start of a run folder: what its files contain about this start, not about earlier ones."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from mpidata.run.exits import Exit, read_exit_note
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.side_channel import STARTED, said_aside

__all__ = ["Attempt", "read_figures"]


@dataclasses.dataclass
class Attempt:
    """A start of a run.

    Parameters
    ----------
    run : RunFolder
        The run folder, prepared for the start.
    plan : Plan
        The plan in the folder.
    events, launcher_log : int
        Bytes that earlier starts have written to these files.
    aside : Path or None
        File in which the scheduler notes its start if it cannot write events; removed with the job.
    """

    run: RunFolder
    plan: Plan
    events: int
    launcher_log: int
    aside: Path | None = None
    _joined: bool = False

    @classmethod
    def of(cls, run: RunFolder, plan: Plan) -> Attempt:
        """Return a new attempt, of which nothing has started yet."""
        return cls(run, plan, _size(run.events), _size(run.launcher_log))

    @property
    def fault_tolerant(self) -> bool:
        """Whether the job outlives the death of a solver."""
        return self.plan.fault_tolerance == "ulfm"

    def joined(self) -> bool:
        """Whether all ranks have joined, as the scheduler's first event shows."""
        if not self._joined:
            told_aside = self.aside is not None and STARTED in said_aside(self.aside)
            self._joined = told_aside or _size(self.run.events) > self.events
        return self._joined

    def joined_at(self) -> int:
        """When all ranks had joined, in ns of Unix time; 0 if they have not, or if this cannot be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(self.run.events, "rb") as file:
            file.seek(self.events)
            return int(json.loads(file.readline())["time"] * 1e9)
        return 0

    def lost_trainers(self) -> list[int]:
        """Ranks of dead trainers without which the job continues, according to the scheduler so far."""
        told = read_figures(self.run.progress) or {}
        return [1 + trainer for trainer, state in enumerate(told.get("trainers", ())) if state == "dead"]

    def bad_ends(self) -> list[Exit]:
        """Read the exit notes of ranks of the world that ended badly.

        Ranks that nobody had ended come first, in order of time: the first one is usually the cause, because a
        launcher then ends the others.
        """
        found = [ended for ended in map(read_exit_note, self.run.rank_exits()) if ended is not None]
        mine = [ended for ended in found if ended.rank is not None and 0 <= ended.rank < self.plan.world]
        return sorted(mine, key=lambda ended: (ended.told, ended.at))

    def launcher_said(self) -> str:
        """Return what the launcher has printed."""
        with contextlib.suppress(OSError), open(self.run.launcher_log, "rb") as file:
            file.seek(self.launcher_log)
            return file.read().decode(errors="replace")
        return ""


def _size(path: Path) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def read_figures(path: Path) -> dict[str, Any] | None:
    """Read summary.json or progress.json; None if it is missing or not such a file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
