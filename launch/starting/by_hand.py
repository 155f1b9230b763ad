"""`mpirun -n N mpidata run JOB`: every rank runs this, then becomes the shim that runs the program of its role.

Rank 0 makes the run folder and passes its path to the others in a small file in the output folder, which is named after
the launcher's job: only the program of the role may initialise MPI.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from mpidata.config import Job, load_job
from mpidata.errors import LaunchError, MpidataError
from mpidata.launch.starting.command import shim_path
from mpidata.launch.starting.environment import Place
from mpidata.launch.starting.fault_tolerance import check_elastic, is_on, without_ulfm
from mpidata.launch.starting.folder.prepare import load_replay, prepare_run
from mpidata.launch.starting.folder.resume import look_at, make_ready
from mpidata.launch.starting.mpirun import find_mpirun
from mpidata.launch.watching.processes import processes_of, variables_of
from mpidata.run.own_files import read_own, write_text
from mpidata.run.runs import find_run as find_run_folder
from mpidata.run.side_channel import ASIDE

__all__ = ["find_run", "run_by_hand", "tell_run"]

_TIMEOUT_S = 60.0
_AFTER_RANK_0_S = 5.0
_SKEW_S = 30.0  # largest difference between the clocks of two hosts
_KEEP_S = 3600.0


def run_by_hand(
    path: str | None,
    overrides: Sequence[str],
    place: Place,
    resume: str | None = None,
    retry_set_aside: bool = False,
    replay: str | None = None,
) -> NoReturn:
    """Become the shim of this rank.

    Parameters
    ----------
    path : str or None
        The job file; None with `resume` or `replay`.
    overrides : sequence of str
        Keys to set, `a.b=value`.
    place : Place
        Of this process.
    resume : str, optional
        The folder of a run to resume.
    retry_set_aside : bool
        Whether to run its simulations again that were set aside.
    replay : str, optional
        The folder of a run to replay.

    Raises
    ------
    MpidataError
        On rank 0, with the reason. The other ranks then exit silently, with the status of the command for it.

    Notes
    -----
    All ranks must call this. Ranks other than 0 sleep until rank 0 is ready, at most a minute.
    """
    if place.rank:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # from the launcher, after rank 0 has printed what is wrong
    try:
        shim = shim_path()
        # Only rank 0 looks for the checkpoint; the others use the job file of the run.
        earlier = resume or replay
        job = load_job(str(path) if earlier is None else find_run_folder(earlier).job, overrides)
        _check_size(job, place)
        file = _file(job, place)
        if place.rank == 0:
            run = _announce(job, overrides, file, resume, retry_set_aside, replay)
        else:
            run = find_run(file, _TIMEOUT_S)
    except MpidataError as error:
        if place.rank == 0 or (place.rank == 1 and isinstance(error, _NobodyTold)):
            raise
        # Most launchers end all ranks when one fails: rank 0 must have printed the reason before.
        time.sleep(_AFTER_RANK_0_S)
        sys.exit(2)
    sys.stdout.flush()
    if place.rank == 0:  # the scheduler's output goes to its log
        os.environ[ASIDE] = f"/dev/fd/{_inheritable(os.dup(2))}"
    os.execv(shim, [str(shim), str(run)])


class _NobodyTold(LaunchError):
    """Rank 0 has not reported the run folder; rank 1 prints the error instead."""


def _check_size(job: Job, place: Place) -> None:
    needed = job.world_size
    if place.size is None or place.size == needed:
        return
    fix = f"Start it with -n {needed}."
    if place.size == 1:
        with contextlib.suppress(LaunchError):
            fix = (
                f"Start it with {find_mpirun()} -n {needed}: the mpirun of another MPI starts {needed} jobs of 1 rank."
            )
    ranks = "1 rank" if place.size == 1 else f"{place.size} ranks"
    raise LaunchError(f"The launcher started {ranks}, but the job has {needed}: {job.layout}. {job.path}. {fix}")


def _announce(
    job: Job, overrides: Sequence[str], file: Path, resume: str | None, retry_set_aside: bool, replay: str | None
) -> Path:
    """Make the run folder or make it ready, and report its path or the failure to the other ranks."""
    _remove_old(file.parent)
    try:
        fault_tolerance = is_on(job.launch.fault_tolerance, os.environ)
        if resume is not None:
            run, lock = _resume(resume, overrides, fault_tolerance, retry_set_aside)
        else:
            earlier = find_run_folder(replay) if replay is not None else None
            job = load_replay(earlier, overrides) if earlier is not None else job
            check_elastic(job, fault_tolerance)
            folder, _, lock = prepare_run(job, fault_tolerance, earlier)
            run = folder.path
        for note in job.notes:
            print(f"mpidata: {note}", file=sys.stderr)
        _inheritable(lock)  # for as long as this rank runs
    except MpidataError as error:
        with contextlib.suppress(MpidataError):
            tell_run(file, error=str(error))
        raise
    tell_run(file, run=run)
    print(f"mpidata: run folder {run}", file=sys.stderr, flush=True)
    if fault_tolerance == "none":
        print(f"mpidata: {without_ulfm(job.launch.fault_tolerance)}", file=sys.stderr, flush=True)
    return run


def _inheritable(descriptor: int) -> int:
    os.set_inheritable(descriptor, True)
    return descriptor


def _resume(resume: str, overrides: Sequence[str], fault_tolerance: str, retry_set_aside: bool) -> tuple[Path, int]:
    run = find_run_folder(resume)
    lock = run.hold()
    if processes_of(run.path):
        raise LaunchError(f"Processes of {run.path} are still running. Wait until they end, or stop them.")
    found = look_at(run.path, overrides, retry_set_aside)
    for sentence in (*found.problems, found.sentence):
        print(f"mpidata: {sentence}", file=sys.stderr)
    check_elastic(found.job, fault_tolerance)
    make_ready(found, fault_tolerance)
    return run.path, lock


def tell_run(file: Path, run: Path | None = None, error: str | None = None) -> None:
    """Report the path of the run folder to the other ranks, or the error because of which there is none.

    Raises
    ------
    LaunchError
        The file cannot be written.
    """
    told = {"run": str(run) if run else None, "error": error, "time": time.time(), "boot": _boot(), "uptime": _uptime()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(told), 0o600)
    except OSError as error:
        raise LaunchError(f"Cannot write {file}: {error.strerror}. Remove it, or make its folder writable.") from None


def find_run(file: Path, timeout_s: float) -> Path:
    """Wait until rank 0 reports the run folder, and return its path.

    Parameters
    ----------
    file : Path
        The file that rank 0 writes. One of an earlier job of the same name or of another user is ignored.
    timeout_s : float
        Longest time to wait.

    Raises
    ------
    LaunchError
        Rank 0 has refused to start, or has not reported in time.
    """
    deadline, pause, why = time.monotonic() + timeout_s, 0.01, ""
    while True:
        told = None
        with contextlib.suppress(OSError, ValueError):
            try:
                told, why = json.loads(read_own(file)), ""
            except LaunchError as error:  # rank 0 may still replace it
                why = f" {error}"
        if told is not None and _is_of_this_job(told):
            if told["run"] is None:
                raise LaunchError(str(told["error"]))
            return Path(told["run"])
        if time.monotonic() >= deadline:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.5)
    raise _NobodyTold(
        f"Rank 0 has not reported the run folder within {timeout_s:.0f} s. {file}. Read the output of rank 0; on "
        f"several hosts the output folder must be shared by all.{why}"
    )


def _is_of_this_job(told: dict[str, object]) -> bool:
    """Whether it was written after the launcher had started; names of launchers' jobs are reused."""
    started = _launcher_started()
    if told.get("boot") == _boot():
        return float(str(told["uptime"])) >= started
    return float(str(told["time"])) >= time.time() - _uptime() + started - _SKEW_S


def _file(job: Job, place: Place) -> Path:
    return Path(os.path.abspath(job.folder / job.output)) / f".start-{place.job}.json"


def _remove_old(folder: Path) -> None:
    for file in folder.glob(".start-*"):
        with contextlib.suppress(OSError):
            found = file.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _KEEP_S:
                file.unlink()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return ""


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _launcher_started() -> float:
    """Start of the launcher of this rank, in seconds of `_uptime`; scripts in between do not count."""
    fields = _stat(os.getpid())
    while (parent := int(fields[1])) > 0:
        fields = _stat(parent)
        if not _has_rank(parent):
            return float(fields[19]) / os.sysconf("SC_CLK_TCK")
    return float(fields[19]) / os.sysconf("SC_CLK_TCK") - _SKEW_S  # the launcher is outside the container


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def _has_rank(pid: int) -> bool:
    try:
        pairs = variables_of(pid)
    except OSError:  # it belongs to another user, so it was not started by us
        return False
    return any(pair.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMIX_RANK=", b"PMI_RANK=")) for pair in pairs)
