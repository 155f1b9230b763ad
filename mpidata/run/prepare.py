"""Making the folder of the next run of a job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import FOLDER_MODE, write_text
from mpidata.run.plan import Plan

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["check_record", "next_run", "prepare_run"]


def next_run(job: Job) -> Path:
    """Where the next run of a job would go; nothing is made."""
    parent = _runs(job)
    numbers = [int(entry.name) for entry in parent.iterdir() if entry.name.isdecimal()] if parent.is_dir() else []
    return parent / str(max(numbers, default=0) + 1)


def check_record(job: Job) -> None:
    """Make sure that a new run of a job finds no record of another one at its `record.path`; raises MpidataError."""
    if job.record is not None and job.record.path is not None:
        from mpidata.record.earlier import check_empty

        check_empty(job.folder / job.record.path)


def prepare_run(job: Job, fault_tolerance: str = "none") -> tuple[RunFolder, Plan, int]:
    """Make the next run folder of a job, with its job file, parameters and plan.

    Parameters
    ----------
    job : Job
        As `mpidata.config.load_job` returns it.
    fault_tolerance : str
        `ulfm` or `none`.

    Returns
    -------
    run : RunFolder
        A folder that nobody else has.
    plan : Plan
        The plan that it holds.
    lock : int
        As `RunFolder.hold` gives it.

    Raises
    ------
    MpidataError
        The parameters cannot be drawn, or `record.path` has the record of another run; then there is no folder.
    LaunchError
        The folder cannot be made.
    """
    from mpidata.config import resolved_yaml  # these load pydantic and numpy, which a rank that only joins never needs
    from mpidata.run.parameters import write_parameters
    from mpidata.run.samplers import draw_parameters

    check_record(job)
    table, lock = draw_parameters(job), None
    try:
        run = RunFolder(_make_folder(job))
        run.private.mkdir(0o700)
        lock = run.hold()
        for folder in (run.logs, run.exits):
            folder.mkdir(FOLDER_MODE)
        plan = Plan.of(job, run.path, fault_tolerance)
        learned = len(table) < job.simulations + job.validation.count
        first = job.simulations if learned else 0
        write_parameters(run.parameters, job.parameter_names, table, first, learned)
        write_text(run.job, resolved_yaml(job))
        if job.solvers.case is not None:
            write_text(run.case, job.solvers.case.text(job.folder))
        run.write_notes(plan, job.notes)
        run.write_plan(plan)  # last, as it makes a run folder of it
    except BaseException as error:
        if lock is not None:
            os.close(lock)
        if not isinstance(error, OSError):
            raise
        raise LaunchError(
            f"Cannot make a run folder in {_runs(job)}: {error.strerror}. {job.path}: key 'output'. "
            "Name a folder that can be written."
        ) from None
    return run, plan, lock


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
