"""The Slurm job that a run is in: what the run folder records about it, and how Slurm reports its end."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder

__all__ = ["SlurmJob"]

_REQUEUES = 3
_ANSWER_S = 10.0
_GOES_ON = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")


@dataclasses.dataclass(frozen=True)
class SlurmJob:
    """A Slurm job, as one of its processes sees it.

    Parameters
    ----------
    number : str
        Its number.
    requeued : int
        How often it was requeued.
    nodes : str
        Its nodes, as Slurm writes them.
    cluster : str
        Name of the cluster.
    task : str
        `<array>_<index>` for a task of an array, else empty.
    """

    number: str
    requeued: int = 0
    nodes: str = ""
    cluster: str = ""
    task: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> SlurmJob | None:
        """Read the job from the environment; None outside Slurm."""
        number, requeued = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_RESTART_COUNT", "")
        if not number:
            return None
        array, index = environ.get("SLURM_ARRAY_JOB_ID", ""), environ.get("SLURM_ARRAY_TASK_ID", "")
        return cls(
            number,
            int(requeued) if requeued.isdecimal() else 0,
            environ.get("SLURM_JOB_NODELIST", ""),
            environ.get("SLURM_CLUSTER_NAME", ""),
            f"{array}_{index}" if array and index else "",
        )

    def note(self, run: RunFolder, checkpoint: int | None) -> None:
        """Add a start of the run to its file `slurm.jsonl`; a `checkpoint` of None: the start was refused.

        Raises
        ------
        LaunchError
            The file cannot be written.
        """
        entry = {"time": round(time.time(), 3), **dataclasses.asdict(self), "checkpoint": checkpoint}
        try:
            with open(_file(run), "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise LaunchError(f"Cannot write {_file(run)}: {error.strerror}. Make room, or make it writable.") from None

    def check_progress(self, run: RunFolder, checkpoint: int) -> None:
        """Check that a job that is requeued repeatedly makes progress.

        Parameters
        ----------
        run : RunFolder
            Its run.
        checkpoint : int
            Number of the newest checkpoint, 0 for none.

        Raises
        ------
        LaunchError
            Its last three starts have written no new checkpoint. The refusal is noted: if the job is requeued once
            more, it has three tries again.
        """
        began = {entry["requeued"]: entry["checkpoint"] for entry in _read(run) if entry.get("number") == self.number}
        starts = range(self.requeued - _REQUEUES, self.requeued)
        if starts[0] < 0 or any(began.get(start) != checkpoint for start in starts):
            return
        self.note(run, None)
        since = f"since checkpoint {checkpoint}" if checkpoint else "at all"
        raise LaunchError(
            f"Slurm job {self.number} was requeued {_REQUEUES} times and has written no checkpoint {since}, so it ends "
            f"here. {run.path}. See the summaries and logs there; give it more time (slurm.time, slurm.signal_s), or "
            f"write checkpoints more often (checkpoint.every_s). `scontrol requeue {self.number}` tries three times "
            "more."
        )

    def is_ending(self) -> str | None:
        """Ask Slurm whether it is ending the job; returns how, in words, or None if it is not or does not answer."""
        try:
            done = subprocess.run(
                ["scontrol", "show", "job", "--oneliner", self.number],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_ANSWER_S,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return _ending(self.number, done.stdout)


def _ending(number: str, said: str) -> str | None:
    """Read scontrol's report of a job, one line for each component; the first one that is ending counts."""
    for line in said.splitlines():
        told = dict(re.findall(r"(\w+)=(\S*)", line))
        state, reason = told.get("JobState", ""), told.get("Reason", "None")
        if state and state not in _GOES_ON:
            unknown = "cancelled, requeued or preempted" if state == "COMPLETING" else state
            return f"Slurm ended job {number} ({unknown if reason == 'None' else reason})"
    return None


def _file(run: RunFolder) -> Path:
    return run.slurm_starts


def _read(run: RunFolder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    try:
        lines = _file(run).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:  # cut off
            continue
        if isinstance(entry, dict) and {"requeued", "checkpoint"} <= entry.keys():
            found.append(entry)
    return found
