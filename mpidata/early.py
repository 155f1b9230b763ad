"""Signals that come to `mpidata run` before it can take them: while modules are loaded and the job file is read.

Imports almost nothing, so that it is in place some hundredths of a second after the start.
"""

import os
import signal
from types import FrameType

__all__ = ["AGAIN", "stop_early", "take_early"]

AGAIN = 75
"""Exit status of a run that was told to end and can be run again: EX_TEMPFAIL."""


def take_early() -> None:
    """Have SIGTERM and SIGUSR1 end this process with status 75 from now on, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGUSR1):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, stop_early)


def stop_early(number: int, _: FrameType | None) -> None:
    """End this process; nothing was started or written yet."""
    name = signal.Signals(number).name
    os.write(2, f"mpidata: {name} came before the job was started. Run the same command again.\n".encode())
    os._exit(AGAIN)
