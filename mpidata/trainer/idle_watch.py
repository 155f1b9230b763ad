"""Report a trainer that takes no batch for a long time although one is ready, with its threads' stacks."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from mpidata.native import structures
from mpidata.native.library import Library
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.side_channel import append

__all__ = ["IdleWatch", "Pace", "pace_of_stream"]

_LOOK_EVERY_S = 5.0
_BUSY = 0.2  # of a core: a process that computes this much does not wait
# Files of torch in whose functions a trainer waits for the others.
_COLLECTIVES = ("/torch/distributed/", "/torch/nn/parallel/distributed", "/torch/autograd/")


@dataclass(frozen=True)
class Pace:
    """The progress of a trainer's script.

    Attributes
    ----------
    batches : int
        Number of batches that it has taken.
    holds_up : bool
        Whether the next batch is ready, and the script does not ask for it.
    why : str
        What is kept waiting, to follow "has drawn nothing for 60 s".
    outside : bool
        Whether the script has left its loop over the stream.
    mates : str
        Which mates of this rank wait for it, and in which calls; empty if none does.
    """

    batches: int
    holds_up: bool
    why: str
    outside: bool = False
    mates: str = ""


def pace_of_stream(library: Library, plan: Plan, waits: bool, outside: bool) -> Pace | None:
    """Return the progress of a stream, None if it is closed; `waits`: the script waits for its next batch."""
    figures = structures.Statistics()
    if library.mpidata_trainer_statistics(ctypes.byref(figures)):
        return None
    one = figures.fill // max(1, figures.windows) if plan.capacity_in_bytes else 0  # full if one more does not fit
    holds_up = figures.fill + one >= figures.capacity and not waits
    return Pace(figures.drawn, holds_up, "its buffer is full, so the solvers wait for it", outside)


class IdleWatch:
    """Reports once, with its threads' stacks, if this trainer takes no batch for a long time and holds others up.

    Parameters
    ----------
    plan : Plan
        The plan of the job.
    index : int
        Number of this trainer.
    pace : callable
        Returns its `Pace`; None when there is nothing more to watch.
    waits : callable, optional
        Called repeatedly with the seconds for which the script waits for other trainers; with 0.0 when it continues.
    after_s, every_s : float
        How long it may take no batch, and the interval between checks.

    Notes
    -----
    `start` starts a thread, which sleeps between checks; `stop` ends it.
    """

    def __init__(
        self,
        plan: Plan,
        index: int,
        pace: Callable[[], Pace | None],
        waits: Callable[[float], object] = lambda seconds: None,
        after_s: float = deadlines.SILENT_S,
        every_s: float = _LOOK_EVERY_S,
    ) -> None:
        self._plan = plan
        self._index = index
        self._pace = pace
        self._waits = waits
        self._after_s = after_s
        self._every_s = every_s
        self._told = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mpidata-idle", daemon=True)

    def start(self) -> None:
        """Start to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; does not block."""
        self._stopped.set()

    def _watch(self) -> None:
        taken, since, waited, looked, used = -1, time.monotonic(), False, time.monotonic(), time.process_time()
        while not self._stopped.wait(self._every_s):
            pace = self._pace()
            if pace is None:
                return
            now, cpu = time.monotonic(), time.process_time()
            rests = cpu - used < _BUSY * (now - looked)
            looked, used = now, cpu
            if pace.batches != taken or not pace.holds_up:
                taken, since = pace.batches, now
            idle_s = now - since
            in_collective = idle_s > 0 and rests and _is_in_collective()
            if in_collective or waited:
                self._waits(idle_s if in_collective else 0.0)
            waited = in_collective
            if idle_s >= self._after_s and not self._told:
                self._told = True
                self._tell(pace, in_collective)

    def _tell(self, pace: Pace, in_collective: bool) -> None:
        text = (
            f"mpidata: Trainer {self._index} has drawn nothing for {self._after_s:g} s (after {pace.batches} batches), "
            f"although {pace.why}. "
        )
        if pace.outside and not in_collective:
            text += "Its script has left the loop over the stream. The next pass continues; the job stops at "
            text += "stream.close() or when the script ends.\n"
        elif in_collective:
            others = "the other trainers" if self._plan.trainers > 1 else "its mates"
            text += f"It waits for {others}, in a collective of torch.distributed. "
            if pace.mates:
                text += f"Meanwhile {pace.mates}. Make the same calls of mpidata on all ranks of a replica. "
        else:
            text += "If it does not compute, it waits for other trainers: "
            text += "each must draw the same number of batches from its own stream. "
        if in_collective or not pace.outside:
            text += "Stacks of its threads:\n" + "".join(_stacks())
        print(text, end="", file=sys.stderr, flush=True)
        log = RunFolder(self._plan.run).idle_log
        if self._index > 0 and not in_collective:  # a trainer that waits is not the one that holds up the job
            append(log, text)


def _is_in_collective() -> bool:
    """Whether the main thread is in a torch function in which trainers wait for one another."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if any(part in frame.f_code.co_filename for part in _COLLECTIVES):
            return True
        frame = frame.f_back
    return False


def _stacks() -> list[str]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own = threading.get_ident()
    stacks = []
    for number, frame in sys._current_frames().items():
        if number != own:
            stacks.append(f"  Thread {names.get(number, number)}:\n")
            stacks += [f"  {line}" for line in traceback.format_stack(frame)]
    return stacks
