"""The first actions of the command: handle signals that arrive while modules load, and set HOME.

Imports almost nothing, so that the handlers are set some hundredths of a second after the start.
"""

import os
import pwd
import signal
from collections.abc import MutableMapping
from types import FrameType

__all__ = ["AGAIN", "begin", "find_home", "stop_early", "take_early"]

AGAIN = 75
"""Exit status of a run that was asked to end and can be started again: EX_TEMPFAIL."""


def take_early(runs: bool) -> None:
    """Let Ctrl-C end this process with one line until `begin`; if it `runs` a job, also SIGTERM and SIGUSR1.

    Ignored signals stay ignored.
    """
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_early)
    for number in (signal.SIGTERM, signal.SIGUSR1) if runs else ():
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop_early)


def begin() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on."""
    if signal.getsignal(signal.SIGINT) == _interrupt_early:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt_early(*_: object) -> None:
    os.write(2, b"mpidata: Ctrl-C came before the command began.\n")
    os._exit(130)


def stop_early(number: int, _: FrameType | None) -> None:
    """End this process; nothing was started or written yet."""
    name = signal.Signals(number).name
    os.write(2, f"mpidata: {name} came before the job was started. Run the same command again.\n".encode())
    os._exit(AGAIN)


def find_home(environ: MutableMapping[str, str]) -> None:
    """Set HOME and USER if they are missing (cron, `env -i`, containers): Open MPI starts nothing without a HOME.

    HOME becomes the folder in the user's passwd entry, or `/` if the user has no entry or the folder does not exist.
    Launchers read settings from HOME, so it is never a folder that others can write.

    Parameters
    ----------
    environ : mutable mapping of str to str
        `os.environ`, which child processes inherit.
    """
    try:
        name, home = pwd.getpwuid(os.geteuid())[0:6:5]
    except KeyError:  # `docker run --user 12345`
        name, home = str(os.geteuid()), ""
    if not environ.get("HOME"):
        environ["HOME"] = home if os.path.isdir(home) else "/"
    if not environ.get("USER") and not environ.get("LOGNAME"):
        environ["USER"] = name
