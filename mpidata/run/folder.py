"""The run folder: where one run of a job keeps its plan, its logs and its result."""

from __future__ import annotations

import dataclasses
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpidata.errors import LaunchError
from mpidata.run.own_files import FOLDER_MODE, check_own, check_own_folder, read_own, write_text
from mpidata.run.plan import Plan

if TYPE_CHECKING:
    from mpidata.config import Job

__all__ = ["RunFolder", "next_run", "prepare_run"]

_PRIVATE = 0o600


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Names of the files of a run folder.

    Parameters
    ----------
    path : Path
        The folder, absolute: `<output>/<name>/<number>`.
    """

    path: Path

    @property
    def job(self) -> Path:
        """The job file with all defaults and overrides."""
        return self.path / "job.yaml"

    @property
    def private(self) -> Path:
        """Folder of what only this user may read."""
        return self.path / "private"

    @property
    def plan(self) -> Path:
        """What each rank reads before it starts its program."""
        return self.private / "plan"

    @property
    def parameters(self) -> Path:
        """The parameters of all simulations."""
        return self.path / "parameters.csv"

    @property
    def logs(self) -> Path:
        """Folder of the programs' output."""
        return self.path / "logs"

    @property
    def launcher_log(self) -> Path:
        """What the launcher itself printed."""
        return self.logs / "launcher.log"

    @property
    def exits(self) -> Path:
        """Folder of the records of programs that ended badly."""
        return self.path / "exits"

    @property
    def progress(self) -> Path:
        """How far the run is."""
        return self.path / "progress.json"

    @property
    def summary(self) -> Path:
        """How the run ended; it is there once the run has ended."""
        return self.path / "summary.json"

    @property
    def stop(self) -> Path:
        """There when the job is asked to write a checkpoint and end; holds why."""
        return self.path / "stop"

    @property
    def over(self) -> Path:
        """There when the job has failed or was stopped: every program then ends soon, or is ended."""
        return self.path / "over"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def events(self) -> Path:
        """What happened, one JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def is_removed(self) -> bool:
        """Whether somebody has removed it since it was made."""
        try:
            self.plan.stat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # it does not answer just now
            pass
        return False

    def group_log(self, plan: Plan, group: int, rank_in_group: int) -> Path:
        """Output of a rank of a solver group, whether that started with the others or was spawned."""
        rank = plan.rank_of(group, rank_in_group)
        return self.logs / f"group-{group:04d}-solver-{rank_in_group}.log" if rank is None else self.log(plan, rank)

    def group_exit(self, plan: Plan, group: int, rank_in_group: int) -> Path:
        """Record of the bad end of a rank of a solver group."""
        rank = plan.rank_of(group, rank_in_group)
        return self.exits / (f"group-{group:04d}-{rank_in_group}" if rank is None else f"rank-{rank:04d}")

    def log(self, plan: Plan, rank: int) -> Path:
        """Output of the program of a rank."""
        role, index, rank_in_group = plan.role_of(rank)
        place = {"scheduler": "", "trainer": f"-{index}", "solver": f"-{index}-{rank_in_group}"}[role]
        return self.logs / f"rank-{rank:04d}-{role}{place}.log"

    def check(self) -> None:
        """Make sure that this is a run folder, and that no other user can have changed it.

        Raises
        ------
        LaunchError
            It is none, or others could write it.
        """
        try:
            check_own_folder(self.path)
            check_own_folder(self.private)
            for path in (self.plan, self.job):
                read_own(path)
        except (FileNotFoundError, NotADirectoryError):
            raise LaunchError(f"{self.path} is no run folder: it has no plan. Name one such as runs/rod/1.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise LaunchError(f"Cannot read the run folder {self.path}: {error}. Make it readable.") from None

    def write_plan(self, plan: Plan) -> None:
        """Write the plan, which makes the folder one that can be started."""
        write_text(self.plan, plan.text(), _PRIVATE)

    def write_notes(self, plan: Plan, notes: Sequence[str]) -> None:
        """Put what is to be known about the job file into the scheduler's log, before the scheduler begins."""
        if not notes:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self.log(plan, 0), flags, 0o644), "w", encoding="utf-8") as log:
            log.writelines(f"mpidata: {note}\n" for note in notes)

    def hold(self) -> int:
        """Keep others from starting this run, until the returned file descriptor is closed or this process ends.

        Raises
        ------
        LaunchError
            Another process holds it, or it cannot be held.
        """
        path = self.private / "lock"  # a file that nobody else can open: whoever can could hold it
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise LaunchError(f"Cannot write into {self.path}: {error.strerror}. Make it writable.") from None
        try:
            check_own(descriptor, path)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LaunchError(f"{self.path} is still running. Wait for its end, or stop it.") from None
        except LaunchError:
            os.close(descriptor)
            raise
        except OSError:  # a file system without locks
            pass
        return descriptor


def next_run(job: Job) -> Path:
    """Where the next run of a job would go; nothing is made."""
    parent = _runs(job)
    numbers = [int(entry.name) for entry in parent.iterdir() if entry.name.isdecimal()] if parent.is_dir() else []
    return parent / str(max(numbers, default=0) + 1)


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
    JobFileError
        The parameters cannot be drawn; then there is no folder.
    LaunchError
        The folder cannot be made.
    """
    from mpidata.config import resolved_yaml  # these load pydantic and scipy, which a rank that only joins never needs
    from mpidata.run.samplers import draw_parameters, write_parameters

    table, lock = draw_parameters(job), None
    try:
        run = RunFolder(_make_folder(job))
        run.private.mkdir(0o700)
        lock = run.hold()
        for folder in (run.logs, run.exits):
            folder.mkdir(FOLDER_MODE)
        plan = Plan.of(job, run.path, fault_tolerance)
        write_parameters(run.parameters, job, table)
        write_text(run.job, resolved_yaml(job))
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
