"""Making the folder of the next run of a job, also of one that replays an earlier run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import JobFileError, LaunchError
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import FOLDER_MODE, write_text
from mpidata.run.plan import Plan
from mpidata.run.plan.parameters import texts_of
from mpidata.run.rank_files import PlannedRun

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from mpidata.config import Job

__all__ = ["check_record", "load_replay", "next_run", "prepare_run"]

_FIXED = ("seed", "parameters", "validation", "fields", "samples", "buffer")


def next_run(job: Job) -> Path:
    """Return the folder that the next run of a job would use; nothing is made."""
    parent = _runs(job)
    numbers = [int(entry.name) for entry in parent.iterdir() if entry.name.isdecimal()] if os.path.isdir(parent) else []
    return parent / str(max(numbers, default=0) + 1)


def check_record(job: Job) -> None:
    """Check that `record.path` of a job has no record of another run; raises MpidataError."""
    if job.record is not None and job.record.path is not None:
        from mpidata.record.recorded_steps import check_empty

        check_empty(job.folder / job.record.path)


def load_replay(run: RunFolder, overrides: Sequence[str]) -> Job:
    """Load the job of a run that will be replayed.

    Parameters
    ----------
    run : RunFolder
        Of the earlier run.
    overrides : sequence of str
        Keys of its job file to set, `a.b=value`.

    Raises
    ------
    LaunchError
        The run cannot be replayed.
    JobFileError
        An override is invalid, or would change the batches.
    """
    from mpidata.config import load_job

    run.check()
    os.close(run.hold())  # it has ended
    plan = Plan.read(run.plan)
    if plan.attempt > 1:
        raise LaunchError(f"{run.path} was resumed, and cannot be replayed: its journal does not cover a whole run.")
    if not plan.journal:
        raise LaunchError(f"{run.path} has no journal, and cannot be replayed. Run the job with `journal: true`.")
    with run.events.open(encoding="utf-8") as events:
        if any('"event": "relief"' in line for line in events):
            raise LaunchError(
                f"{run.path} cannot be replayed: it let a trainer take more than its capacity, at moments that are not "
                "in the journal. Raise buffer.capacity, and run the job again."
            )
    job, old = load_job(run.job, [*overrides, "checkpoint=null"]), load_job(run.job)
    changed = [key for key in _FIXED if getattr(job, key) != getattr(old, key)]
    changed += ["trainers.ranks"] if job.trainers.ranks != old.trainers.ranks else []
    problems = [f"{run.job}: '{key}' cannot be changed in a replay: batches depend on it. Leave it." for key in changed]
    if job.solvers.groups < old.solvers.groups:
        problems.append(f"{run.job}: 'solvers.groups' must be at least {old.solvers.groups} in a replay. Leave it.")
    if problems:
        raise JobFileError(problems)
    return job


def prepare_run(
    job: Job, fault_tolerance: str = "none", replay: RunFolder | None = None
) -> tuple[RunFolder, Plan, int]:
    """Make the next run folder of a job, with its job file, parameters and plan.

    Parameters
    ----------
    job : Job
        As `mpidata.config.load_job` returns it.
    fault_tolerance : str
        `ulfm` or `none`.
    replay : RunFolder, optional
        Of the run that will be replayed; `load_replay` has loaded the job.

    Returns
    -------
    run : RunFolder
        A folder that nobody else has.
    plan : Plan
        The plan that it holds.
    lock : int
        As `RunFolder.hold` returns it.

    Raises
    ------
    MpidataError
        The parameters cannot be drawn, or `record.path` has the record of another run.
    LaunchError
        The folder cannot be made, for example because the disk is full. There is no folder after an error.
    """
    from mpidata.config import resolved_yaml  # these load pydantic and numpy, which a joining rank does not need
    from mpidata.sampling.drawing import draw_parameters
    from mpidata.sampling.parameters_file import write_parameters

    check_record(job)
    table, lock, path = draw_parameters(job) if replay is None else _parameters_of(replay, job), None, None
    try:
        run = RunFolder(path := _make_folder(job))
        run.private.mkdir(0o700)
        lock = run.hold()
        plan = Plan.of(job, run.path, fault_tolerance)
        plan = plan if replay is None else dataclasses.replace(plan, replay=replay.path)
        for folder in (run.logs, run.exits, *([run.journal] if plan.journal else [])):
            folder.mkdir(FOLDER_MODE)
        learned = len(table) < job.simulations + job.validation.count
        first = job.simulations if learned else 0
        write_parameters(run.parameters, job.columns, table, first, learned, plan.texts)
        write_text(run.job, resolved_yaml(job))
        if job.solvers.case is not None:
            write_text(run.case, job.solvers.case.text(job.folder, run.path))
        PlannedRun(run, plan).write_notes(job.notes)
        PlannedRun(run, plan).write_plan()  # last, because it makes the folder a run folder
    except BaseException as error:
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        if not isinstance(error, OSError):
            raise
        raise LaunchError(
            f"Cannot make a run folder in {_runs(job)}: {error.strerror}. {job.path}: key 'output'. "
            "Choose a folder that can be written."
        ) from None
    return run, plan, lock


def _parameters_of(replay: RunFolder, job: Job) -> npt.NDArray[np.float64]:
    from mpidata.sampling.parameters_file import read_parameters

    table, drawn = read_parameters(replay.parameters, job.columns, job.simulations, job.validation.count, texts_of(job))
    if drawn is None or drawn == job.simulations:
        return table
    if not drawn or not set(range(drawn, job.simulations)) <= _cancelled_in(replay):
        raise LaunchError(f"{replay.path} cannot be replayed: its sampler had not drawn all parameters when it ended.")
    table[drawn : job.simulations] = table[drawn - 1]  # any that are valid: they are cancelled again
    return table


def _cancelled_in(run: RunFolder) -> set[int]:
    try:
        return set(json.loads(run.summary.read_text(encoding="utf-8")).get("cancelled", []))
    except (OSError, ValueError, AttributeError, TypeError):
        return set()


def _runs(job: Job) -> Path:
    return Path(os.path.abspath(job.folder / job.output)) / job.name


def _make_folder(job: Job) -> Path:
    _runs(job).mkdir(parents=True, exist_ok=True)
    while True:
        path = next_run(job)
        try:
            path.mkdir(FOLDER_MODE)
        except FileExistsError:  # taken by another run meanwhile
            continue
        return path
