"""The case folders in which spawned groups run; carriers create their own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

from mpidata.errors import MpidataError
from mpidata.native.build_flags import carrier_program
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["Cases"]


class Cases:
    """Copies the case for each group that is spawned, and removes copies that the group's ranks could not remove.

    Parameters
    ----------
    plan : Plan
        The job's plan.

    Notes
    -----
    Does nothing if the job has no case. The work is done by mpidata-carrier, which also does it for carriers.
    """

    def __init__(self, plan: Plan) -> None:
        self._run = RunFolder(plan.run)
        self._ranks = plan.ranks_per_group
        self._there = plan.lifetime == "simulation" and self._run.case.exists()
        self._values: dict[int, Sequence[str]] = {}
        self._lock = threading.Lock()

    def make(self, group: int, values: Sequence[str]) -> None:
        """Copy the case; blocks. `values`: each `name=value`, including `simulation` and `try`.

        Raises
        ------
        MpidataError
            The case cannot be copied.
        """
        if self._there:
            with self._lock:
                self._values[group] = values
            self._call("--make-case", group, [*values, f"group={group}", f"ranks={self._ranks}"])

    def end(self, group: int) -> None:
        """Remove or keep the copy of a lost group, unless its own rank has done so; blocks."""
        with self._lock:
            values = self._values.pop(group, None)
        if values is not None:
            self._call("--failed-case", group, values)

    def forget(self, group: int) -> None:
        """Note that a group has left the job: its rank 0 removes the copy when its program has ended."""
        with self._lock:
            self._values.pop(group, None)

    def clear(self) -> None:
        """Remove the remaining copies at the end of the job; blocks."""
        for group in list(self._values):
            self.end(group)

    def _call(self, what: str, group: int, values: Sequence[str]) -> None:
        command = [str(carrier_program()), what, str(self._run.path), str(group), *values]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise MpidataError(done.stderr.strip() or f"mpidata-carrier {what} ended with status {done.returncode}")
