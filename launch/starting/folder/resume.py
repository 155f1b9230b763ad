"""Resuming a run: what can be resumed, from where, and how its folder is made ready for the next start."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import JobFileError, LaunchError
from mpidata.run.event_log import Events
from mpidata.run.folder import RunFolder
from mpidata.run.logged_losses import read_losses
from mpidata.run.own_files import FOLDER_MODE, write_text
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.run.runs import find_run

if TYPE_CHECKING:
    from mpidata.config import Job

_LONGEST = 60

__all__ = ["Resume", "is_complete", "look_at", "make_ready"]


@dataclasses.dataclass(frozen=True)
class Resume:
    """How a run is resumed.

    Parameters
    ----------
    run : RunFolder
        Its folder.
    job : Job
        The job to run, with the overrides.
    attempt : int
        Number of the next start of the folder.
    checkpoint : int
        Number of the checkpoint to start from; 0: there is none, so the run starts over.
    problems : list of str
        One sentence for each newer checkpoint that cannot be used.
    set_aside : list of int
        Simulations that were set aside.
    retry_set_aside : bool
        Whether to run these again.
    """

    run: RunFolder
    job: Job
    attempt: int
    checkpoint: int
    problems: list[str]
    set_aside: list[int] = dataclasses.field(default_factory=list)
    retry_set_aside: bool = False

    @property
    def sentence(self) -> str:
        """Notice from where the run is resumed."""
        where = f" from checkpoint {self.checkpoint}."
        if not self.checkpoint:
            where = ": it has no usable checkpoint, so it starts over."
        return f"Resuming {self.run.path}{where}{self._about_set_aside()}"

    def _about_set_aside(self) -> str:
        if not self.set_aside:
            return ""
        many = f"{len(self.set_aside)} simulation{'s' * (len(self.set_aside) > 1)} that had been set aside"
        if self.retry_set_aside:
            return f" {many} will be run again."
        return f" {many} will not be run again without --retry-set-aside."


def look_at(
    path: str | Path, overrides: Sequence[str] = (), retry_set_aside: bool = False, named: str | None = None
) -> Resume:
    """Find out how a run can be resumed; nothing is changed.

    Parameters
    ----------
    path : str or Path
        The run folder.
    overrides : sequence of str
        Keys of the job file to set, `a.b=value`.
    retry_set_aside : bool
        Whether to run simulations again that were set aside.
    named : str, optional
        The job file that the user gave, for the message if an override is refused.

    Raises
    ------
    LaunchError
        It is not a run folder, or the run is complete.
    JobFileError
        An override is invalid, or would change the simulations.

    Notes
    -----
    Reads the files of the newest checkpoint. A caller that changes the run must hold it before; see `RunFolder.hold`.
    """
    from mpidata.checkpoint import (
        newest_valid,
    )  # these load pydantic and more, which a joining rank does not need
    from mpidata.config import load_job
    from mpidata.config.base import changed_fixed_keys

    run = find_run(path)
    before = Plan.read(run.plan)
    if before.replay is not None:
        raise LaunchError(f"{run.path} replays {before.replay}, and cannot be resumed. Replay that once more.")
    if is_complete(run):
        raise LaunchError(f"{run.path} is complete, so there is nothing to resume. Start a new run of the job file.")
    job, old = load_job(run.job, overrides), load_job(run.job) if overrides else None
    changed = list(changed_fixed_keys(old, job)) if old is not None else []
    if changed:
        raise JobFileError(
            f"{named or run.job.name}: '{key}' cannot be changed when a run is resumed: it is {_shown(before)} in "
            f"{run.path}, and {_shown(now)} was asked for. Leave it, or start a new run."
            for key, before, now in changed
        )
    checkpoint, problems = newest_valid(run.checkpoints)
    set_aside = [int(entry["simulation"]) for entry in read_losses(run.events)["set_aside"]]
    return Resume(run, job, 1 + before.attempt, checkpoint, problems, set_aside, retry_set_aside)


def make_ready(resume: Resume, fault_tolerance: str) -> Plan:
    """Prepare a run folder for its next start.

    The last start's files are kept: `summary.json` as `summary-1.json`, `exits` as `exits-1`. Logs and events continue.
    If this is interrupted, it can be repeated: the number of the start is that of the plan, which is written last.

    Parameters
    ----------
    resume : Resume
        As `look_at` returns it.
    fault_tolerance : str
        `ulfm` or `none`.

    Returns
    -------
    Plan
        The new plan in the folder.

    Raises
    ------
    LaunchError
        The folder cannot be written.

    Notes
    -----
    The caller holds the run; see `RunFolder.hold`.
    """
    from mpidata.config import resolved_yaml

    run, last = resume.run, resume.attempt - 1
    plan = Plan.of(resume.job, run.path, fault_tolerance, resume.checkpoint, resume.attempt)
    try:
        with contextlib.suppress(FileNotFoundError):
            run.summary.replace(run.summary_of(last))
        if not (kept := run.exits_of(last)).exists():  # else `exits` is already the new one
            with contextlib.suppress(FileNotFoundError):
                run.exits.rename(kept)
        run.exits.mkdir(FOLDER_MODE, exist_ok=True)
        patterns = (".*.new", "scale*-*", f"{run.alive.name}/*")  # left-overs there
        beside = (*run.path.glob(".*.new"), *(path for pattern in patterns for path in run.private.glob(pattern)))
        afresh = () if resume.checkpoint else (run.losses,)
        for path in (run.stop, run.over, run.progress, *run.signs(), *afresh, *beside):
            path.unlink(missing_ok=True)
        if resume.retry_set_aside and resume.set_aside:
            events = Events(run.events)
            events.write("retry_set_aside", simulations=resume.set_aside)
            events.close()
            if events.problem is not None:
                raise events.problem
        write_text(run.job, resolved_yaml(resume.job))
        if resume.job.solvers.case is not None:
            write_text(run.case, resume.job.solvers.case.text(resume.job.folder, run.path))
        PlannedRun(run, plan).write_notes(resume.job.notes)
        PlannedRun(run, plan).write_plan()
    except OSError as error:
        raise LaunchError(f"Cannot write into {run.path}: {error.strerror}. Make room, or make it writable.") from None
    return plan


def _shown(value: object) -> str:
    """Return a value of the job file as text for a sentence."""
    if value is None:
        return "not set"
    text = json.dumps(value, default=lambda inner: getattr(inner, "model_dump", inner.__str__)())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def is_complete(run: RunFolder) -> bool:
    """Whether a run is complete."""
    return _status(run.summary) == "complete"


def _status(summary: Path) -> str | None:
    try:
        return str(json.loads(summary.read_text(encoding="utf-8"))["status"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
