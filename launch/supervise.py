"""Start the launcher of a job, watch it, pass on signals, and see to it that nothing is left when it has ended."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType

from mpidata.errors import LaunchError
from mpidata.launch.cleanup import end_processes, processes_of
from mpidata.run_folder import RunFolder

__all__ = ["Ending", "Signals", "supervise"]

_LOOK_EVERY_S = 0.1
_GRACE_S = 10.0  # from a failed job's summary to the launcher's end: MPI_Finalize may hang then
_TERM_S = 2.5  # for mpirun to end its ranks in order after SIGTERM
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Ending:
    """How the launcher of a job ended.

    Parameters
    ----------
    status : int
        Its exit status, negative for a signal. It says little: mpirun gives 0 after killing a job, too.
    stopped_by : int or None
        The signal that stopped the job before there was a summary.
    """

    def __init__(self, status: int, stopped_by: int | None) -> None:
        self.status = status
        self.stopped_by = stopped_by


class Signals:
    """Collects SIGINT, SIGTERM and SIGHUP while it is entered; an ignored one (nohup) stays ignored.

    Attributes
    ----------
    first : int or None
        The first signal that came.
    count : int
        How many came.

    Notes
    -----
    To be entered by the main thread.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self.count = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        """Take the signals."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGINT:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back to who had them."""
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, number: int, _: FrameType | None) -> None:
        self.first = self.first or number
        self.count += 1


def supervise(
    run: RunFolder,
    command: Sequence[str],
    variables: Mapping[str, str],
    signals: Signals,
    look: Callable[[], None],
) -> Ending:
    """Run the launcher of a job until the job has ended.

    Parameters
    ----------
    run : RunFolder
        Where the ranks write.
    command : sequence of str
        The launcher and its arguments.
    variables : mapping of str to str
        What to add to the environment.
    signals : Signals
        Entered by the caller. The first one ends the job, the second one at once.
    look : callable
        Called some times a second meanwhile.

    Returns
    -------
    Ending
        No process of the job is left on this machine.

    Raises
    ------
    LaunchError
        The launcher cannot be started.

    Notes
    -----
    Blocks. For the main thread: the launcher is told to end when the thread that started it does, so that a `kill -9`
    of this process leaves no rank behind.
    """
    environment = {**os.environ, **variables, "MPIDATA_RUN": str(run.path)}
    _prctl()(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # where process 1 of a container reaps nothing, orphans would stay
    with open(run.launcher_log, "ab") as log:
        try:
            launcher = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # or the terminal would send it the Ctrl-C too
                preexec_fn=_end_with(os.getpid()),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LaunchError(f"Cannot start {command[0]}: {error}. Install an MPI, or correct PATH.") from None
    stopped_by = None
    try:
        _watch(launcher, run, signals, look)
        stopped_by = None if run.summary.exists() else signals.first
    finally:
        status = _end(launcher, run, signals)
    return Ending(status, stopped_by)


def _watch(launcher: subprocess.Popen[bytes], run: RunFolder, signals: Signals, look: Callable[[], None]) -> None:
    """Return when the launcher has ended, a signal has come, or the grace after a failure's summary is over.

    The programs of a job that has not failed may work on after they have left the stream: to save a model, say.
    """
    failed_at = None
    while launcher.poll() is None and signals.first is None:
        look()
        if failed_at is None and run.summary.exists() and _has_failed(run):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > _GRACE_S:
            return
        time.sleep(_LOOK_EVERY_S)


def _has_failed(run: RunFolder) -> bool:
    try:
        return bool(json.loads(run.summary.read_text(encoding="utf-8"))["status"] == "failed")
    except (OSError, ValueError, KeyError):
        return True


def _end(launcher: subprocess.Popen[bytes], run: RunFolder, signals: Signals) -> int:
    """End the launcher, if it has not ended, and all that is left of the job."""
    deadline = time.monotonic() + _TERM_S
    orphans = processes_of(run.path)  # as they become when mpirun, which does not wait for them, has ended
    if launcher.poll() is None:
        launcher.terminate()
    while launcher.poll() is None and time.monotonic() < deadline and signals.count < 2:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        if launcher.poll() is None:
            launcher.kill()
    orphans += end_processes(run.path, timeout_s=1.5)
    status = launcher.wait()
    _reap(set(orphans))
    return status


def _reap(orphans: Iterable[int]) -> None:
    deadline = time.monotonic() + 0.5
    for pid in orphans:
        with contextlib.suppress(ChildProcessError):  # it was not ours in the end
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.01)


def _prctl() -> Callable[..., int]:
    return ctypes.CDLL(None).prctl


def _end_with(parent: int) -> Callable[[], None]:
    """Make what the launcher's process does before it becomes mpirun: ask for SIGTERM at this process's end."""
    prctl = _prctl()  # looked up here, as little is safe after a fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
