"""`mpidata run JOB` on one machine: start the job, show it, end it in order, and restart it if requested."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mpidata.checkpoint.memory import available_bytes, check_memory
from mpidata.config import Job, load_job
from mpidata.errors import JobFileError, LaunchError
from mpidata.launch.batch.system import batch_job
from mpidata.launch.page.changes import Changes
from mpidata.launch.starting.command import command_line, shim_path
from mpidata.launch.starting.fault_tolerance import check_elastic, without_ulfm
from mpidata.launch.starting.folder.prepare import check_record, load_replay, next_run, prepare_run
from mpidata.launch.starting.folder.resume import Resume, is_complete, look_at, make_ready
from mpidata.launch.starting.folder.temporary import make_folders, remove_abandoned
from mpidata.launch.starting.hosts import on_hosts_left
from mpidata.launch.starting.launcher import Launcher, find_launcher
from mpidata.launch.starting.memory import memory_needs
from mpidata.launch.starting.named_run import NamedRun, changed_since, find_named
from mpidata.launch.starting.rendezvous import rendezvous
from mpidata.launch.starting.restarts import Restarts
from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.first_exception import FirstException
from mpidata.launch.watching.outcome import Outcome, settle
from mpidata.launch.watching.processes import processes_of
from mpidata.launch.watching.progress import Aside, Progress
from mpidata.launch.watching.result import show_outcome
from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.supervise import supervise
from mpidata.reporting.end_report import report_at_end
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.run.runs import find_run
from mpidata.run.side_channel import ASIDE, read_summary

__all__ = ["print_command", "run_local"]

_RESTARTS = "With --restarts 3, for example, it would be resumed automatically from its last checkpoint."
_GONE_S = 5.0  # time for the ranks of a run to end after its `mpidata run` was killed


def print_command(
    path: str | None,
    overrides: Sequence[str],
    console: Console,
    resume: str | None = None,
    replay: str | None = None,
    name: str | None = None,
) -> None:
    """Print the command that `run_local` would start, and the path of the run folder; nothing is made.

    Raises
    ------
    MpidataError
        The job file is invalid, or mpidata or its MPI is not installed.
    """
    if name is not None and (run := find_named(load_job(str(path), overrides), name)) is not None:
        if is_complete(run):
            console.print(Text(f"# {_said_complete(run, name)}"), soft_wrap=True)
            return
        resume = str(run.path)
    found = look_at(resume, overrides) if resume is not None else None
    job = found.job if found is not None else _load(path, overrides, replay)
    for note in job.notes:
        console.print(Text(f"# {note}"), soft_wrap=True)
    if found is None:
        check_record(job)
    launcher = find_launcher(job, os.environ)
    ft = launcher.fault_tolerance()
    check_elastic(job, ft)
    plan = Plan.of(job, found.run.path if found is not None else next_run(job), ft)
    command = launcher.command(shim_path(), plan)
    console.print(Text(f"# {plan.world} ranks: {job.layout}; run folder {plan.run}"), soft_wrap=True)
    for line in [*launcher.describe(), *(f"memory of {need}" for need in memory_needs(plan))]:
        console.print(Text(f"# {line}"), soft_wrap=True)
    console.print(Text(command_line(command, launcher.environment(None, {}))), soft_wrap=True)


def run_local(
    path: str | None,
    overrides: Sequence[str],
    console: Console,
    errors: Console,
    resume: str | None = None,
    restarts: int = 0,
    name: str | None = None,
    retry_set_aside: bool = False,
    replay: str | None = None,
) -> int:
    """Run a job on this machine.

    Parameters
    ----------
    path : str or None
        The job file; None with `resume` or `replay`.
    overrides : sequence of str
        Keys to set, `a.b=value`.
    console, errors : rich.console.Console
        For the display and the summary, and for errors.
    resume : str, optional
        The folder of a run to resume.
    restarts : int
        How often to resume the run automatically after one of its processes has died.
    name : str, optional
        Resume the run that was started under this name, or start it.
    retry_set_aside : bool
        Whether to run the simulations again that were set aside in the run of `resume`.
    replay : str, optional
        The folder of a run to replay.

    Returns
    -------
    int
        Exit status: 0 complete or stopped by the training scripts, 1 failed, 75 stopped by SIGTERM or SIGUSR1,
        128 + signal if another one stopped it.

    Raises
    ------
    MpidataError
        The job could not be started.

    Notes
    -----
    Blocks until the job and all its processes have ended. For the main thread, because it handles signals.
    """
    with contextlib.ExitStack() as held:
        found, named = None, None
        if resume is not None:
            found = _take(find_run(resume), overrides, held, retry_set_aside)
        elif name is not None:
            now = load_job(str(path), overrides)
            named = held.enter_context(contextlib.closing(NamedRun(now, name)))
            if named.run is not None and is_complete(named.run):
                console.print(Text(_said_complete(named.run, name)), soft_wrap=True)
                with contextlib.suppress(JobFileError):  # for example, its programs may have been removed
                    _say(changed_since(now, named.run, load_job(named.run.job)), errors)
                return 0
            if named.run is not None:
                found = _take(named.run, overrides, held, named=now.path.name)
                _say(changed_since(now, named.run, found.job), errors)
        job = found.job if found is not None else _load(path, overrides, replay)
        for note in job.notes:
            errors.print(Text(note), soft_wrap=True)
        launcher, shim, batch = find_launcher(job, os.environ), shim_path(), batch_job(os.environ)
        fault_tolerance = launcher.fault_tolerance()
        check_elastic(job, fault_tolerance)
        for warning in check_memory(Plan.of(job, Path()), launcher.trainers_here, available_bytes()):
            errors.print(Text(warning), soft_wrap=True)
        signals = held.enter_context(Signals(job.checkpoint is not None))
        if found is not None:
            if batch is not None:
                batch.check_progress(found.run, found.checkpoint)
            run, plan = found.run, _make_ready(found, fault_tolerance, console)
        else:
            run, plan, lock = prepare_run(job, fault_tolerance, find_run(replay) if replay is not None else None)
            held.callback(os.close, lock)
            if named is not None:
                named.note(run)
        if named is not None:
            named.close()  # whoever finds the note from now on finds the run held
        if batch is not None:
            batch.note(run, plan.checkpoint)
        if plan.fault_tolerance == "none":
            then = f"It is then resumed automatically, at most {restarts} times." if restarts else _RESTARTS
            console.print(Text(f"{without_ulfm(job.launch.fault_tolerance)} {then}"), soft_wrap=True)
        outcome = _run(launcher, Attempt.of(run, plan), shim, signals, Restarts(restarts), (console, errors))
    show_outcome(outcome, console, errors)
    if outcome.exit_status in (0, 1) and not outcome.removed:  # after a stop from outside nobody waits for the report
        _say(report_at_end(run), console)
    return outcome.exit_status


def _run(
    launcher: Launcher,
    attempt: Attempt,
    shim: Path,
    signals: Signals,
    restarts: Restarts,
    consoles: tuple[Console, Console],
) -> Outcome:
    """Start an attempt, and restart as long as that helps; returns how the last attempt ended."""
    console, errors = consoles
    while True:
        outcome = _start(launcher, attempt, shim, signals, console)
        why = restarts.why(outcome) if signals.first is None else None
        if why is None:
            return outcome
        errors.print(Text(f"{outcome.summary.get('error')}\n{why}"), soft_wrap=True)
        launcher, changes = on_hosts_left(launcher, {**os.environ, **launcher.environment(None, os.environ)})
        for sentence in changes:
            errors.print(Text(sentence), soft_wrap=True)
        found = dataclasses.replace(look_at(attempt.run.path), job=launcher.job)
        attempt = Attempt.of(found.run, _make_ready(found, attempt.plan.fault_tolerance, console))


def _take(
    run: RunFolder,
    overrides: Sequence[str],
    held: contextlib.ExitStack,
    retry_set_aside: bool = False,
    named: str | None = None,
) -> Resume:
    """Hold a run until `held` is left, and then find out how it can be resumed: nobody else can change it."""
    held.callback(os.close, run.hold())
    deadline = time.monotonic() + _GONE_S
    while processes_of(run.path):  # they may be completing a checkpoint
        if time.monotonic() > deadline:
            raise LaunchError(f"Processes of {run.path} are still running. Wait until they end, or stop them.")
        time.sleep(0.1)
    return look_at(run.path, overrides, retry_set_aside, named)


def _load(path: str | None, overrides: Sequence[str], replay: str | None) -> Job:
    return load_job(str(path), overrides) if replay is None else load_replay(find_run(replay), overrides)


def _said_complete(run: RunFolder, name: str) -> str:
    return f"{run.path}, started as {name}, is complete."


def _say(sentence: str, console: Console) -> None:
    if sentence:
        console.print(Text(sentence), soft_wrap=True)


def _make_ready(found: Resume, fault_tolerance: str, console: Console) -> Plan:
    for sentence in (*found.problems, found.sentence):
        console.print(Text(sentence), soft_wrap=True)
    return make_ready(found, fault_tolerance)


def _start(launcher: Launcher, attempt: Attempt, shim: Path, signals: Signals, console: Console) -> Outcome:
    """Start the ranks of an attempt and wait until they end."""
    run, plan = attempt.run, attempt.plan
    started = time.monotonic()
    remove_abandoned()
    with make_folders(run.path) as folders, rendezvous() as meeting:
        launcher.prepare(run, plan, os.environ)
        variables = launcher.environment(folders, os.environ) | (meeting if launcher.is_local else {})
        attempt.aside = folders.aside
        variables[ASIDE] = str(folders.aside)
        more = (FirstException(run, plan), Changes(run, plan), Aside(folders.aside))
        with Progress(run, PlannedRun(run, plan).log(1), console, plan.checkpoint_within_s, more) as progress:
            console.print(Text(f"{launcher.job.name}: {plan.world} ranks, run folder {run.path}"), soft_wrap=True)
            for line in launcher.describe():
                console.print(Text(line), soft_wrap=True)
            command = launcher.command(shim, plan)
            end = supervise(attempt, command, variables, signals, progress.look, launcher.silence_s)
        cleaned = None if folders.session.is_dir() else folders.session
        end = dataclasses.replace(end, unwritten=read_summary(folders.aside), cleaned=cleaned)
    if (batch := batch_job(os.environ)) is not None and not is_complete(run):
        end = dataclasses.replace(end, by_batch_system=batch.is_ending())
    return settle(attempt, end, time.monotonic() - started)
