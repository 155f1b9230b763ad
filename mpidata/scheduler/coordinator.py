"""The scheduler's share of checkpoints: when one is due, its number, and when it becomes valid."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from mpidata.checkpoint.files import (
    CHECKSUMS,
    SCHEDULER,
    Digest,
    digest,
    numbers,
    path_of,
    trainer_file,
    unfinished,
)
from mpidata.errors import MpidataError, as_line
from mpidata.native import constants
from mpidata.native.event import CheckpointWanted, CheckpointWritten
from mpidata.run.event_log import write_json
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import FOLDER_MODE, sync_folder
from mpidata.run.plan import Plan
from mpidata.scheduler.messages import MIXED, index_of

__all__ = ["Coordinator", "Orders"]

_SHA256 = re.compile("[0-9a-f]{64}")


class Orders(Protocol):
    """The scheduler's messages that the coordinator sends."""

    def checkpoint(self, number: int) -> None:
        """Order all trainers to write the checkpoint of this number."""


class Coordinator:
    """Coordinates the writing of checkpoints, one at a time.

    A checkpoint goes through these stages: its folder is created; the trainers are ordered to write; all of them have
    written; the scheduler's state and the checksums are written, the folder is renamed, older ones are removed. A
    thread does all work on files, so that no call here blocks.

    Parameters
    ----------
    plan : Plan
        The job's plan.
    orders : Orders
        To the trainers.
    state : callable
        Returns the state that `read_scheduler` is to return after a resume: a new object that JSON can represent.
        Called when a checkpoint begins, so that the state is never newer than the trainers' ledgers.
    note : callable
        Receives the events `checkpoint` (number, batch, seconds, bytes), `checkpoint_failed` (number, reason), and
        `checkpoint_again` (the same) if the part of a trainer is missing without which the others continue.
    now : float
        The time in seconds of a monotonic clock, as are the other times.

    Attributes
    ----------
    last_valid : int
        Number of the newest complete checkpoint, 0 if there is none.
    last_batch : int
        The batch after which that was written; -1 if this start has written none.
    failure : str or None
        Why the last attempt failed; None if it did not.

    Notes
    -----
    Not thread-safe. A failed checkpoint is retried when the next one is due; one that lacks a part, at once.
    """

    def __init__(
        self,
        plan: Plan,
        orders: Orders,
        state: Callable[[], object],
        note: Callable[..., None],
        now: float,
    ) -> None:
        self.last_valid = plan.checkpoint
        self.last_batch = -1
        self.failure: str | None = None
        self._plan = plan
        self._orders = orders
        self._state = state
        self._note = note
        self._folder = RunFolder(plan.run).checkpoints
        self._kept = [number for number in numbers(self._folder) if number <= plan.checkpoint]
        self._number = max([plan.checkpoint, *numbers(self._folder)])
        self._due = now + plan.checkpoint_every_s if plan.checkpoint_every_s else float("inf")
        self._over = False
        self._current: _Checkpoint | None = None
        self._task: _Task | None = None
        self._living = set(range(plan.trainers - plan.trainer_spares))
        self._asked = -1  # batch of the latest further request of a trainer, -1: none

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written, or is about to be."""
        return self._current is not None

    def want(self, now: float) -> None:
        """Start a checkpoint as soon as possible, unless one is already being written."""
        if self._over:
            self.failure = "the training loop is over"
        elif self._current is None:
            self._begin(now)

    def asked(self, event: CheckpointWanted, now: float) -> None:
        """Process a trainer's request, which waits while a checkpoint of an earlier batch is being written."""
        index_of(event, self._plan.trainers)
        if self._current is None:
            self.want(now)
        else:
            self._asked = max(self._asked, event.batch)

    def written(self, event: CheckpointWritten) -> None:
        """Process a trainer's report on its part."""
        trainer = index_of(event, self._plan.trainers)
        current = self._current
        if current is None or event.number != current.number:
            return  # of an abandoned checkpoint
        if trainer not in current.of:
            return  # it was a spare when this one was ordered
        current.batch = max(current.batch, event.batch)
        text = event.text
        if event.failed:
            over = event.failed == constants.LOOP_OVER
            self._over = self._over or over
            if current.failure is None or (current.over and not over):
                current.failure, current.over = text, over
        elif not _SHA256.fullmatch(text):
            raise MpidataError(f"Rank {event.rank} sent {text!r} as a checksum. {MIXED}")
        current.files[trainer] = Digest(text, event.bytes)

    def trainer_lost(self, trainer: int, how: str = "has died") -> None:
        """Note that the others continue without a trainer: a checkpoint that waits for it is restarted."""
        self._living.discard(trainer)
        current = self._current
        if current is not None:
            current.of.discard(trainer)
        if current is not None and current.ordered and trainer not in current.files:
            current.lacks = current.lacks or f"trainer {trainer} {how} meanwhile"

    def trainer_joined(self, trainer: int, values: Iterable[tuple[str, int, float]]) -> None:
        """Note that a spare has taken a place; it reports after which checkpoint it takes part."""
        self._living.add(trainer)
        before = next(value for name, _, value in values if name == constants.TRAINS)
        if self._current is not None and self._current.ordered and self._current.number > before:
            self._current.of.add(trainer)

    def tick(self, now: float, may_begin: bool = True) -> None:
        """Do what is due; call this several times a second. `may_begin`: a periodic checkpoint may begin."""
        if self._task is not None:
            if self._task.is_alive():
                return
            self._task_done(self._task, now)
        current = self._current
        if current is None:
            if may_begin and not self._over and now >= self._due:
                self._begin(now)
        elif current.ordered and self._task is None and current.of <= current.files.keys():
            self._task = _Task(self._finish, current)

    def close(self, now: float, wait_s: float = 2.0) -> None:
        """At the end of the job: complete a checkpoint of which all parts are written, and remove an unfinished one.

        Notes
        -----
        Blocks for at most `wait_s`.
        """
        self._over = True
        current = self._current
        if current is None:
            return
        if self._task is None and current.ordered and current.of <= current.files.keys():
            self._task = _Task(self._finish, current)
        if self._task is not None:
            self._task.join(wait_s)
            if current.ordered and not self._task.is_alive():
                self._task_done(self._task, now)
                return
        shutil.rmtree(unfinished(self._folder, current.number), ignore_errors=True)

    def _begin(self, now: float) -> None:
        self._number += 1
        self.failure = None
        self._current = _Checkpoint(self._number, now, self._state())
        self._task = _Task(self._prepare, self._current)
        if self._plan.checkpoint_every_s:
            self._due = now + self._plan.checkpoint_every_s

    def _task_done(self, task: _Task, now: float) -> None:
        self._task = None
        current = self._current
        assert current is not None
        if task.error is not None:
            current.failure = f"{unfinished(self._folder, current.number)} cannot be written: {task.error}"
            current.over = False
        elif not current.ordered:
            self._orders.checkpoint(current.number)
            current.ordered, current.of = True, set(self._living)
            return
        self._current = None
        if current.failure is None and not current.lacks:
            self.last_valid, self.last_batch = current.number, current.batch
            seconds = round(max(0.0, now - current.begun), 3)
            self._note("checkpoint", number=current.number, batch=current.batch, seconds=seconds, bytes=current.bytes)
        elif current.failure is None:
            self.failure = current.lacks
            self._note("checkpoint_again", number=current.number, reason=current.lacks)
        else:
            self.failure = current.failure
            if not current.over:
                self._note("checkpoint_failed", number=current.number, reason=current.failure)
        asked, self._asked = self._asked, -1
        if current.lacks or (asked > current.batch and current.failure is None):
            self.want(now)

    # In a thread

    def _prepare(self, current: _Checkpoint) -> None:
        self._folder.mkdir(FOLDER_MODE, exist_ok=True)
        for left in self._folder.glob("*.new"):
            shutil.rmtree(left, ignore_errors=True)
        unfinished(self._folder, current.number).mkdir(FOLDER_MODE)

    def _finish(self, current: _Checkpoint) -> None:
        folder = unfinished(self._folder, current.number)
        if current.failure is not None or current.lacks:
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            current.bytes = self._make_valid(folder, current)
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._kept.append(current.number)
        try:
            self._remove_old()
        except (OSError, MpidataError) as error:  # the new one is complete anyway; retried after the next one
            with contextlib.suppress(OSError):
                print(f"Old checkpoints cannot be removed: {as_line(error)}", file=sys.stderr, flush=True)

    def _make_valid(self, folder: Path, current: _Checkpoint) -> int:
        files = {trainer_file(trainer): wanted for trainer, wanted in sorted(current.files.items())}
        for name, wanted in files.items():
            size = (folder / name).stat().st_size
            if size != wanted.bytes:
                raise OSError(f"{name} has {size} bytes, but its trainer wrote {wanted.bytes}")
        write_json(folder / SCHEDULER, current.state, durable=True)
        files[SCHEDULER] = digest(folder / SCHEDULER)
        sums = {"number": current.number, "files": {name: wanted._asdict() for name, wanted in files.items()}}
        write_json(folder / CHECKSUMS, sums, durable=True)
        sync_folder(folder)
        os.rename(folder, path_of(self._folder, current.number))
        sync_folder(self._folder)
        return sum(wanted.bytes for wanted in files.values())

    def _remove_old(self) -> None:
        """Keep the newest ones, not counting damaged ones newer than the one from which this run was resumed."""
        self._kept = self._kept[-self._plan.checkpoint_keep :]
        for number in numbers(self._folder):
            if number not in self._kept:
                # Renamed first, so that a partly removed one is never taken for a complete one.
                os.rename(path_of(self._folder, number), unfinished(self._folder, number))
                shutil.rmtree(unfinished(self._folder, number), ignore_errors=True)


class _Checkpoint:
    """A checkpoint that is being written."""

    def __init__(self, number: int, begun: float, state: object) -> None:
        self.number = number
        self.begun = begun
        self.state = state
        self.ordered = False
        self.of: set[int] = set()  # the trainers that write it, once it is ordered
        self.batch = -1
        self.bytes = 0
        self.files: dict[int, Digest] = {}
        self.failure: str | None = None
        self.lacks = ""  # whose part is missing: another checkpoint is to replace this one
        self.over = False  # whether it failed only because the training loop is over, which is no error


class _Task(threading.Thread):
    """A thread that works on files, started at once; `error` is the exception that it raised."""

    def __init__(self, work: Callable[[_Checkpoint], None], checkpoint: _Checkpoint) -> None:
        super().__init__(name="checkpoint", daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._checkpoint = checkpoint
        self.start()

    def run(self) -> None:
        """Work, and keep the exception."""
        try:
            self._work(self._checkpoint)
        except Exception as error:
            self.error = error
