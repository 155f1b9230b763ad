"""A trainer that takes nothing while the solvers wait for room in its buffer: the user is told where it stands."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from mpidata.native.library import Library, Statistics
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["IdleWatch"]

"""File among the logs for what the user is to see of other trainers than the first, whose log `mpidata run` shows."""

_AFTER_S = 60.0
_LOOK_EVERY_S = 5.0


class IdleWatch:
    """Tells once, with its threads' stacks, that this trainer has drawn nothing for long though its buffer is full.

    Parameters
    ----------
    plan : Plan
        Of the job.
    library : Library
        Opened as a trainer.
    index : int
        Number of this trainer.
    in_draw : callable
        Whether the script waits for a batch just now: then others hold it up.
    after_s, every_s : float
        How long it may draw nothing, and how often to look.

    Notes
    -----
    `start` starts a thread, which sleeps between its looks; `stop` ends it.
    """

    def __init__(
        self,
        plan: Plan,
        library: Library,
        index: int,
        in_draw: Callable[[], bool],
        after_s: float = _AFTER_S,
        every_s: float = _LOOK_EVERY_S,
    ) -> None:
        self._plan = plan
        self._library = library
        self._index = index
        self._in_draw = in_draw
        self._after_s = after_s
        self._every_s = every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mpidata-idle", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more; does not block."""
        self._stopped.set()

    def _watch(self) -> None:
        drawn, since = -1, time.monotonic()
        figures = Statistics()
        while not self._stopped.wait(self._every_s):
            if self._library.mpidata_trainer_statistics(ctypes.byref(figures)):
                return
            moves = figures.drawn != drawn or figures.fill < figures.capacity or self._in_draw()
            if moves:
                drawn, since = figures.drawn, time.monotonic()
            elif time.monotonic() - since >= self._after_s:
                self._tell(figures.drawn)
                return

    def _tell(self, drawn: int) -> None:
        text = (
            f"mpidata: Trainer {self._index} has drawn nothing for {self._after_s:g} s (after {drawn} batches), though "
            "its buffer is full, so the solvers wait for it. If it does not compute, it waits for the other trainers: "
            "each must draw from its own stream, all the same number of batches. Its threads are here:\n"
        )
        text += "".join(self._stacks())
        print(text, end="", file=sys.stderr, flush=True)
        if self._index > 0:
            _append(RunFolder(self._plan.run).idle_log, text)

    def _stacks(self) -> list[str]:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        own = threading.get_ident()
        stacks = []
        for number, frame in sys._current_frames().items():
            if number != own:
                stacks.append(f"  Thread {names.get(number, number)}:\n")
                stacks += [f"  {line}" for line in traceback.format_stack(frame)]
        return stacks


def _append(path: Path, text: str) -> None:
    """Add to a file that other trainers write to as well; where that cannot be done, the log has it."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(file, text.encode(errors="replace"))
        finally:
            os.close(file)
