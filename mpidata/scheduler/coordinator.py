"""The scheduler's share of checkpoints: when one is due, its number, and what makes it valid once all is written."""

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
from mpidata.run.own_files import sync_folder
from mpidata.run.plan import Plan
from mpidata.scheduler.messages import MIXED, index_of

__all__ = ["Coordinator", "Orders"]

_SHA256 = re.compile("[0-9a-f]{64}")


class Orders(Protocol):
    """What the coordinator needs of the scheduler's messages."""

    def checkpoint(self, number: int) -> None:
        """Tell all trainers to write a checkpoint of this number."""


class Coordinator:
    """Has checkpoints written, one at a time.

    A checkpoint goes through these stages: its folder is made; the trainers are told to write; all of them have
    written; the scheduler's state and the checksums are written, the folder renamed, older ones removed. What touches
    files is done in a thread, so that nothing here blocks.

    Parameters
    ----------
    plan : Plan
        Of the job.
    orders : Orders
        To the trainers.
    state : callable
        Returns what the scheduler wants to find in `read_scheduler` after a resume: a new object that JSON knows.
        Called when a checkpoint begins, so that it never knows more than the trainers' ledgers.
    note : callable
        Gets the events `checkpoint` (number, batch, seconds, bytes), `checkpoint_failed` (number, reason), and
        `checkpoint_again` (the same) of one that lacks the part of a trainer without which the others go on.
    now : float
        The time, in seconds, of a clock that never goes back; so are the other times.

    Attributes
    ----------
    last_valid : int
        Number of the newest checkpoint that is whole, 0 if there is none.
    last_batch : int
        The batch after which that was written; -1 where this start has written none.
    failure : str or None
        Why the last attempt failed; None where it did not.

    Notes
    -----
    For one thread. One that fails is not tried again before the next one is due; one that lacks a part is at once.
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
        self._asked = -1  # batch from which a trainer has asked for another one, -1: none

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written, or waits for that."""
        return self._current is not None

    def want(self, now: float) -> None:
        """Have a checkpoint written as soon as possible; one that is being written already will do."""
        if self._over:
            self.failure = "the training loop is over"
        elif self._current is None:
            self._begin(now)

    def asked(self, event: CheckpointWanted, now: float) -> None:
        """Take a trainer's wish, which waits while a checkpoint of an earlier batch is being written."""
        index_of(event, self._plan.trainers)
        if self._current is None:
            self.want(now)
        else:
            self._asked = max(self._asked, event.batch)

    def written(self, event: CheckpointWritten) -> None:
        """Take what a trainer says of its part."""
        trainer = index_of(event, self._plan.trainers)
        current = self._current
        if current is None or event.number != current.number:
            return  # of one that was given up
        if trainer not in current.of:
            return  # it has taken a place since
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
        """Note that the others go on without a trainer: a checkpoint that waits for it is begun anew."""
        self._living.discard(trainer)
        current = self._current
        if current is not None:
            current.of.discard(trainer)
        if current is not None and current.ordered and trainer not in current.files:
            current.lacks = current.lacks or f"trainer {trainer} {how} meanwhile"

    def trainer_joined(self, trainer: int, values: Iterable[tuple[str, int, float]]) -> None:
        """Note that a spare has taken a place, which reports behind which checkpoint it takes part."""
        self._living.add(trainer)
        before = next(value for name, _, value in values if name == constants.TRAINS)
        if self._current is not None and self._current.ordered and self._current.number > before:
            self._current.of.add(trainer)

    def tick(self, now: float, may_begin: bool = True) -> None:
        """Do what is due; to be called several times a second. `may_begin`: a periodic checkpoint may begin."""
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
        """At the end of the job: let a checkpoint that is all but written become whole, and remove an unfinished one.

        Notes
        -----
        Blocks for `wait_s` at most.
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
        self._folder.mkdir(exist_ok=True)
        for left in self._folder.glob("*.new"):
            shutil.rmtree(left, ignore_errors=True)
        unfinished(self._folder, current.number).mkdir()

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
        except (OSError, MpidataError) as error:  # the new one is whole all the same; tried again after the next one
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
        """Keep the newest ones; damaged ones, newer than the one this run has continued, do not count as such."""
        self._kept = self._kept[-self._plan.checkpoint_keep :]
        for number in numbers(self._folder):
            if number not in self._kept:
                # Under the name of one that is not whole, so that it never looks like one that is.
                os.rename(path_of(self._folder, number), unfinished(self._folder, number))
                shutil.rmtree(unfinished(self._folder, number), ignore_errors=True)


class _Checkpoint:
    """One that is being written."""

    def __init__(self, number: int, begun: float, state: object) -> None:
        self.number = number
        self.begun = begun
        self.state = state
        self.ordered = False
        self.of: set[int] = set()  # who writes it, where it was ordered
        self.batch = -1
        self.bytes = 0
        self.files: dict[int, Digest] = {}
        self.failure: str | None = None
        self.lacks = ""  # whose part, so that another one is to take its place
        self.over = False  # whether it failed only as the training loop is over, as any job's may be


class _Task(threading.Thread):
    """Work on files; `error` is what went wrong. Starts at once."""

    def __init__(self, work: Callable[[_Checkpoint], None], checkpoint: _Checkpoint) -> None:
        super().__init__(name="checkpoint", daemon=True)
        self.error: BaseException | None = None
        self._work = work
        self._checkpoint = checkpoint
        self.start()

    def run(self) -> None:
        """Work, and keep what goes wrong."""
        try:
            self._work(self._checkpoint)
        except Exception as error:
            self.error = error
