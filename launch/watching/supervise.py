"""Starts the launcher of a job, watches it, forwards signals, and cleans up when it has ended."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BufferedWriter
from pathlib import Path
from typing import Any

from mpidata.errors import LaunchError
from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.processes import end_processes, processes_of
from mpidata.launch.watching.signals import Signals
from mpidata.launch.watching.watch import Watch
from mpidata.native.build_flags import carrier_program
from mpidata.run import deadlines
from mpidata.run.exits import Exit
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import opener

__all__ = ["LauncherEnd", "supervise"]

_LOOK_EVERY_S = 0.1
_REMOVE_S = 60.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class LauncherEnd:
    """How the launcher of a job ended.

    Parameters
    ----------
    status : int
        Its exit status, negative for a signal. Unreliable: mpirun also returns 0 after killing a job.
    stopped_by : int or None
        The signal that stopped the job, if one came before there was a summary.
    vanished : int or None
        A rank that was killed with its mpidata-rank, and without which the job could not continue.
    ended_ranks : bool
        Whether it ended ranks before this process asked it to: it received a signal from elsewhere.
    lost_host : str or None
        A host that no longer answers.
    by_batch_system : str or None
        How the batch system ended the whole job, in words.
    unwritten : dict or None
        The summary, if the scheduler could not write it.
    cleaned : Path or None
        The folder for the launcher's temporary files, if it was removed before the end.
    """

    status: int
    stopped_by: int | None = None
    vanished: int | None = None
    ended_ranks: bool = False
    lost_host: str | None = None
    by_batch_system: str | None = None
    unwritten: dict[str, Any] | None = None
    cleaned: Path | None = None


def supervise(
    attempt: Attempt,
    command: Sequence[str],
    variables: Mapping[str, str],
    signals: Signals,
    look: Callable[[], None],
    silence_s: float | None = None,
) -> LauncherEnd:
    """Run the launcher of a job until the job has ended.

    Parameters
    ----------
    attempt : Attempt
        To start.
    command : sequence of str
        The launcher and its arguments.
    variables : mapping of str to str
        What to add to the environment.
    signals : Signals
        Entered by the caller. Those that request a checkpoint let the job write one first; others, and a second one,
        do not.
    look : callable
        Called several times a second meanwhile.
    silence_s : float, optional
        As `Watch` takes it.

    Returns
    -------
    LauncherEnd
        No process of the job is left on this machine.

    Raises
    ------
    LaunchError
        The launcher cannot be started, or its log cannot be written.

    Notes
    -----
    Blocks. For the main thread: the launcher gets SIGTERM when the thread that started it ends, so that a `kill -9` of
    this process leaves no rank behind.
    """
    run = attempt.run
    environment = {**os.environ, **variables, "MPIDATA_RUN": str(run.path)}
    _prctl()(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # if process 1 of a container does not reap, orphans would stay
    with _log(run) as log:
        try:
            launcher = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # or the terminal would also send it the Ctrl-C
                preexec_fn=_end_with(os.getpid()),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LaunchError(f"Cannot start {command[0]}: {error}. Install an MPI, or correct PATH.") from None
    stopped_by, vanished, lost_host, ended_ranks = None, None, None, False
    try:
        with Watch(attempt, launcher.pid, signals, silence_s) as watch:
            while launcher.poll() is None and not watch.is_due():
                look()
                time.sleep(_LOOK_EVERY_S)
            stopped_by = signals.first if watch.asked or not run.summary.exists() else None
            watch.is_due()  # a launcher may end with its ranks between two looks
            ended_ranks = watch.vanished is not None and any(map(_was_told, attempt.bad_ends()))
            # Ranks of a launcher that is killed or signalled end without a note.
            vanished = None if (launcher.poll() or 0) < 0 or ended_ranks else watch.vanished
            lost_host = watch.lost_host
    finally:
        status = _end(launcher, run, signals)
    return LauncherEnd(status, stopped_by, vanished, ended_ranks, lost_host)


def _was_told(ended: Exit) -> bool:
    """Whether a rank was ended by the signal that launchers end ranks with."""
    return ended.told and ended.signal == signal.SIGTERM


def _log(run: RunFolder) -> BufferedWriter:
    try:
        return open(run.launcher_log, "ab", opener=opener)
    except OSError as error:
        raise LaunchError(
            f"Cannot write {run.launcher_log}: {error.strerror}. Make room, or make it writable."
        ) from None


def _end_cases(run: RunFolder) -> None:
    """Remove the copies of the case that killed carriers have left on this host, or keep them as failed cases."""
    if not run.case.exists():
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = [str(carrier_program()), "--end-cases", str(run.path), "-1"]
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=_REMOVE_S)


def _end(launcher: subprocess.Popen[bytes], run: RunFolder, signals: Signals) -> int:
    """End the launcher, if it still runs, and the remaining processes of the job."""
    deadline = time.monotonic() + deadlines.TERM_S
    orphans = processes_of(run.path)  # mpirun does not wait for them: its end makes them orphans
    if launcher.poll() is None:
        launcher.terminate()
    while launcher.poll() is None and time.monotonic() < deadline and signals.count < 2:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        if launcher.poll() is None:
            launcher.kill()
    orphans += end_processes(run.path, timeout_s=deadlines.ORPHANS_S)
    _end_cases(run)
    status = launcher.wait()
    _reap(set(orphans))
    return status


def _reap(orphans: Iterable[int]) -> None:
    deadline = time.monotonic() + deadlines.REAP_S
    for pid in orphans:
        with contextlib.suppress(ChildProcessError):  # it did not become our child
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.01)


def _prctl() -> Callable[..., int]:
    return ctypes.CDLL(None).prctl


def _end_with(parent: int) -> Callable[[], None]:
    """Return what the launcher's process calls before it becomes mpirun: it asks for SIGTERM if this process ends."""
    prctl = _prctl()  # looked up here, as little is safe after a fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
