"""A trainer's part in checkpoints: takes a snapshot within draw, and writes it in a separate thread."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.checkpoint.constants import SnapshotConstants
from mpidata.checkpoint.files import Digest, digest, path_of, trainer_file, unfinished
from mpidata.checkpoint.ledgers import samples_of
from mpidata.checkpoint.published import restore_published, save_published
from mpidata.checkpoint.restore import Restored, restore
from mpidata.checkpoint.trainer_file import Head, Saved, TrainerFile, of_mate, write
from mpidata.errors import StreamError
from mpidata.native import structures
from mpidata.native.library import Library, check
from mpidata.native.moments import numbers
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["Checkpoints"]

# Most that is written of samples in one piece, before these are unpinned.
_WRITE_BYTES = 32 << 20
_WRITE_SAMPLES = 4096


class Checkpoints:
    """The checkpoints of a trainer.

    Parameters
    ----------
    plan : Plan
        Of the job.
    library : Library
        Opened as a trainer.
    index : int
        Number of this trainer.

    Attributes
    ----------
    restored : Restored
        The state that this trainer continues from; batch 0 and no state in a new job.
    come_first : callable
        Called before a snapshot, when all trainers have had the same number of batches. If it returns False, something
        else is first, and the trainer asks for its next batch once more.
    record_first : callable
        Called before a checkpoint becomes valid: samples recorded by then are not sent again after a resume.

    Notes
    -----
    Methods are for the thread that draws, or for one that keeps it from drawing.
    """

    def __init__(self, plan: Plan, library: Library, index: int) -> None:
        self.restored = Restored(0, {}, plan.trainers)
        self.come_first: Callable[[], object] = lambda: None
        self.record_first: Callable[[], object] = lambda: None
        self._objects: dict[str, Any] = {}
        self._state: Callable[[], dict[str, Saved]] = dict
        self._own: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._plan = plan
        self._library = library
        self._index = index
        self._writing: threading.Thread | None = None

    def restore(self) -> None:
        """Restore the plan's checkpoint, if it names one; raises StreamError or LibraryError if that fails.

        Notes
        -----
        Call it before the trainer starts. Blocks while it reads.
        """
        if self._plan.checkpoint:
            self.restored = restore(self._plan, self._library, self._index)
            restore_published(self._library, self.restored.state)

    def register(self, objects: Mapping[str, Any]) -> None:
        """Keep these objects' states in checkpoints from now on, and restore them if the job is resumed.

        Raises
        ------
        StreamError
            The objects or their names are invalid or do not fit the checkpoint, or this is the second call.
        """
        from mpidata.checkpoint import state  # loads torch

        if self._objects:
            raise StreamError(
                f"register: the script has registered {', '.join(self._objects)} already. Register all in one call."
            )
        state.check_stateful(objects)
        if self._plan.checkpoint or self.restored.state:
            saved = {name: self.restored.state[name] for name in self._unclaimed()}
            state.restore_state(objects, saved, self._folder())
            self.restored = self.restored._replace(
                state={name: held for name, held in self.restored.state.items() if name not in saved}
            )
        self._objects = dict(objects)
        self._state = partial(state.save_state, self._objects)

    @property
    def registered(self) -> Mapping[str, Any]:
        """The objects that the script has registered, by name."""
        return self._objects

    def restore_registered(self) -> None:
        """Restore the registered objects' states again, because something else has changed them."""
        from mpidata.checkpoint import state

        with TrainerFile(self._folder() / trainer_file(self._index % self.restored.trainers)) as file:
            saved = file.state()
        state.restore_state(self._objects, {name: saved[name] for name in self._objects}, self._folder())

    def hold(self, name: str, thing: Any) -> None:
        """Keep the state of an object of mpidata as long as it is in use, and restore it.

        Parameters
        ----------
        name : str
            Not an identifier, so that no object of the script can have this name.
        thing : Stateful
            The object.
        """
        from mpidata.checkpoint import state  # loads torch

        saved = self.restored.state.pop(name, None)
        if saved is not None:
            state.restore_state({name: thing}, {name: saved}, self._folder())
        self._own[name] = thing

    def _folder(self) -> Path:
        """Folder of the checkpoint that is restored."""
        return path_of(RunFolder(self._plan.run).checkpoints, self._plan.checkpoint)

    def _unclaimed(self) -> list[str]:
        """List the objects of the script whose states are in the checkpoint and not restored yet."""
        return sorted(name for name in self.restored.state if name.isidentifier())

    def check_claimed(self) -> None:
        """Raise StreamError if the checkpoint holds states of objects that the script has not registered."""
        if self._unclaimed():
            names = ", ".join(self._unclaimed())
            raise StreamError(
                f"The checkpoint that this run resumes from holds the state of {names}, but the script started its "
                "loop without it. Before the loop, call mpidata.register(...) with the same names."
            )

    def take(self) -> bool:
        """Take the snapshot that is due, to be written while training continues; False: something else is first.

        Notes
        -----
        Takes as long as saving the registered objects into memory. A failure is reported to the scheduler and on
        stderr, and training continues.
        """
        if self.come_first() is False:
            return False
        self.finish()
        try:
            state = self.states()
            snapshot = structures.Snapshot()
            check(self._library, self._library.mpidata_trainer_snapshot_take(ctypes.byref(snapshot)))
        except Exception as error:  # a registered object may raise anything
            self._give_up(f"trainer {self._index} cannot save its state: {type(error).__name__}: {error}")
            return True
        self._writing = threading.Thread(target=self._write, args=(snapshot, state), name="checkpoint", daemon=True)
        self._writing.start()
        return True

    def states(self) -> dict[str, Saved]:
        """Copy the states of registered objects, and of those of mpidata."""
        return self._state() | self._own_state() | save_published(self._library)

    def _own_state(self) -> dict[str, Saved]:
        if not self._own:
            return {}
        from mpidata.checkpoint import state

        return state.save_state(dict(self._own))

    def of_mates(self) -> list[dict[str, Saved]]:
        """Collect the states of this trainer's mates; for the writing thread."""
        return []

    def finish(self) -> None:
        """Wait until the current snapshot is written."""
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def _write(self, snapshot: structures.Snapshot, state: dict[str, Saved]) -> None:
        folder = unfinished(RunFolder(self._plan.run).checkpoints, snapshot.number)
        path = folder / trainer_file(self._index)
        try:
            written = self._write_file(path, snapshot, state)
            self.record_first()
        except Exception as error:  # whatever it is, training continues
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            with contextlib.suppress(OSError):
                path.unlink()
            self._give_up(f"trainer {self._index} cannot write {path}: {reason}")
            return
        self._library.mpidata_trainer_snapshot_end(0, written.bytes, written.sha256.encode())

    def _give_up(self, reason: str) -> None:
        self._library.mpidata_trainer_snapshot_end(1, 0, reason.encode())
        print(f"A checkpoint was abandoned: {reason}. Training continues without it.", file=sys.stderr, flush=True)

    def _write_file(self, path: Path, snapshot: structures.Snapshot, state: dict[str, Saved]) -> Digest:
        plan = self._plan
        head = Head(
            trainer=self._index, trainers=plan.trainers, plan_capacity=plan.capacity, policy=plan.policy,
            capacity_in_bytes=plan.capacity_in_bytes, by_step=int(plan.trainers_at_least > 0),
            ranks_per_replica=plan.ranks_per_replica,
            simulations=plan.simulations, samples=samples_of(plan), number=snapshot.number, batch=snapshot.batch,
            batches_of_all=snapshot.batches_of_all, count=tuple(snapshot.count),
            unseen=snapshot.unseen, next_retired=snapshot.next_retired, capacity=snapshot.capacity,
            added=snapshot.added, random=tuple(snapshot.random),
            statistics=tuple(getattr(snapshot.statistics, field[0]) for field in structures.Statistics._fields_),
        )  # fmt: skip
        arrays = self._samples(snapshot) | self._ledger(snapshot)
        held = SnapshotConstants(plan, self._library, snapshot.steps) if plan.constants else None
        arrays |= held.arrays if held else {}
        for rank, states in enumerate([state, *self.of_mates()]):
            for name, saved in states.items():
                arrays[f"{of_mate(rank)}state/{name}"] = np.frombuffer(saved.contents, np.uint8)
                if saved.layout:
                    arrays[f"{of_mate(rank)}sharded/{name}"] = np.frombuffer(saved.layout, np.uint8)
        sizes = self._sizes(snapshot.steps, arrays)
        try:
            values = held.values() if held else {}
            write(path, head, plan.fields, arrays, lambda file, places: self._write_fields(file, places, sizes), values)
        finally:
            if held:
                held.release()
        return digest(path)

    def _samples(self, snapshot: structures.Snapshot) -> dict[str, NDArray[Any]]:
        samples, steps = sum(snapshot.count), snapshot.steps
        arrays: dict[str, NDArray[Any]] = {
            "parameters": np.empty((steps, len(self._plan.parameters)), np.float64),
            "time": np.empty(steps, np.float64),
            "step": np.empty(steps, np.int64),
            "simulation": np.empty(steps, np.int64),
        }
        self._call("samples", *[array.ctypes.data for array in arrays.values()])
        if self._plan.samples_window > 1:
            arrays["windows"] = np.empty((samples, self._plan.samples_window), np.int64)
            self._call("windows", arrays["windows"].ctypes.data)
        if self._plan.numbers:
            numbers_of = np.empty((steps, len(self._plan.numbers)), np.int64)
            self._call("numbers", numbers_of.ctypes.data)
            columns = zip(self._plan.numbers, numbers_of.T, strict=True)
            arrays |= {f"numbers/{name}": np.ascontiguousarray(of) for name, of in columns}
        buffer, waiting, retired, _ = snapshot.count
        seen = np.zeros(samples, np.uint8)
        if self._plan.policy == "reservoir":
            seen[snapshot.unseen : buffer] = 1
        seen[buffer + waiting : buffer + waiting + retired] = 1
        if self._plan.statistics:
            arrays["scales"] = np.empty((self._plan.n_moments, len(numbers())))
            self._call("scales", arrays["scales"].ctypes.data)
        return {**arrays, "seen": seen}

    def _ledger(self, snapshot: structures.Snapshot) -> dict[str, NDArray[Any]]:
        simulations = self._plan.simulations + self._plan.validation
        arrays: dict[str, NDArray[Any]] = {
            "ledger/steps": np.empty(simulations, np.int64),
            "ledger/whole": np.empty(simulations, np.int64),
            "ledger/complete": np.empty(simulations, np.uint8),
            "ledger/words": np.empty(simulations, np.int64),
            "ledger/bits": np.empty(snapshot.ledger_words, np.uint64),
        }
        self._call("ledger", *[array.ctypes.data for array in arrays.values()])
        return arrays

    def _sizes(self, steps: int, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Bytes of each step's values, by field of a step: (fields, steps)."""
        fields = self._plan.step_fields
        sizes = np.empty((len(fields), steps), np.int64)
        for row, field in zip(sizes, fields, strict=True):
            row[...] = field.nbytes * arrays[f"numbers/{field.length}"] if field.length else field.nbytes
        return sizes

    def _write_fields(self, file: int, places: list[int], sizes: NDArray[np.int64]) -> None:
        numbers = [number for number, field in enumerate(self._plan.fields) if not field.per_simulation]
        ends = np.cumsum(sizes, axis=1)
        written = np.cumsum(sizes.sum(axis=0))
        first, steps = 0, sizes.shape[1]
        while first < steps:
            before = int(written[first - 1]) if first else 0
            fit = int(np.searchsorted(written, before + _WRITE_BYTES, side="right")) - first
            count = min(max(1, fit), _WRITE_SAMPLES, steps - first)
            for row, (field, place) in enumerate(zip(numbers, places, strict=True)):
                self._call("write", file, field, first, count, place + int(ends[row, first] - sizes[row, first]))
            self._call("release", first, count)
            first += count

    def _call(self, what: str, *arguments: object) -> None:
        check(self._library, getattr(self._library, f"mpidata_trainer_snapshot_{what}")(*arguments))
