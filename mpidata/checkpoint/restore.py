"""Restoring a checkpoint: its samples, generator, ledger and state are put into a trainer that has not started yet."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpidata.checkpoint.constants import RestoredConstants
from mpidata.checkpoint.files import path_of, trainer_file, trainers_in
from mpidata.checkpoint.ledgers import complete_steps, received_steps, trainer_of
from mpidata.checkpoint.sample_owners import trainers_for
from mpidata.checkpoint.trainer_file import Saved, TrainerFile
from mpidata.native import constants, structures
from mpidata.native.library import Library, check
from mpidata.native.moments import merge
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

__all__ = ["Restored", "open_all", "restore"]

_READ_BYTES = 64 << 20
_Rows = NDArray[np.int64]


class Restored(NamedTuple):
    """The state that a trainer continues from: batches drawn, states of registered objects, and number of trainers."""

    batch: int
    state: dict[str, Saved]
    trainers: int


class _Part(NamedTuple):
    """Samples for one place: ascending rows of a file."""

    place: int
    file: TrainerFile
    rows: _Rows


@contextlib.contextmanager
def open_all(checkpoint: Path) -> Iterator[list[TrainerFile]]:
    """Open the files of all trainers of a checkpoint, in order; raises StreamError if that fails."""
    with contextlib.ExitStack() as stack:
        trainers = _trainers(checkpoint)
        files = [stack.enter_context(TrainerFile(checkpoint / trainer_file(trainer))) for trainer in trainers]
        for trainer, file in zip(trainers, files, strict=True):
            file.check_belongs(trainer, files[0])
        yield files


def _trainers(checkpoint: Path) -> list[int]:
    """Return whose files exist: those of all trainers, except dead ones in a job that continued without them."""
    try:
        found = trainers_in(checkpoint)
    except OSError:
        found = []
    return found or [0]  # opening this one raises the error


def restore(plan: Plan, library: Library, index: int) -> Restored:
    """Fill this process's trainer from the plan's checkpoint.

    With the checkpoint's number of trainers, each continues its own file: the same arrivals then lead to the same
    draws. With another number the samples are dealt anew, those never drawn first, and the draws have a new seed.

    Parameters
    ----------
    plan : Plan
        Of the job; names the checkpoint.
    library : Library
        Opened as a trainer, which has not started.
    index : int
        Number of this trainer.

    Returns
    -------
    Restored
        The rest, for the script.

    Raises
    ------
    StreamError
        The checkpoint cannot be read, or belongs to another job.
    LibraryError
        The library rejects the checkpoint, or there is not enough memory.
    """
    with open_all(path_of(RunFolder(plan.run).checkpoints, plan.checkpoint)) as files:
        for file in files:
            file.check(plan)
        same = len(files) == plan.trainers and not plan.trainers_at_least
        own = files[index % len(files)]
        state, parts = _continue(plan, own) if same else _deal(plan, files, index)
        # Numbered by start and trainer, so that no two of them draw alike.
        stream = 0 if same else (plan.attempt << 32) + index
        check(library, library.mpidata_trainer_restore(ctypes.byref(state), stream))
        held = RestoredConstants(plan, library)
        if plan.samples_window > 1:
            _put_windows(plan, library, parts, held)
        else:
            for part in parts:
                _put(plan, library, part, held)
        held.release()
        _restore_ledger(plan, library, files, index, same)
        if plan.statistics:
            _restore_scales(plan, library, files, index)
        return Restored(own.head.batch, own.state(), len(files))


def _places(file: TrainerFile) -> list[_Rows]:
    """Return the rows of the samples of each place."""
    ends = np.cumsum(file.head.count)
    return [np.arange(end - count, end) for end, count in zip(ends, file.head.count, strict=True)]


def _continue(plan: Plan, file: TrainerFile) -> tuple[structures.Snapshot, list[_Part]]:
    head = file.head
    buffer, waiting, retired, validation = _places(file)
    relieved = head.capacity - head.plan_capacity if head.capacity_in_bytes == plan.capacity_in_bytes else 0
    capacity = plan.capacity + max(0, relieved)
    kept = len(buffer)
    if not plan.capacity_in_bytes:
        kept = min(kept, capacity)
    elif not head.capacity_in_bytes or plan.capacity < head.plan_capacity:
        kept = _fitting(plan, file, buffer, capacity)[0]
    state = structures.Snapshot(
        batch=head.batch, batches_of_all=head.batches_of_all, unseen=_unseen(plan, min(head.unseen, kept)),
        next_retired=head.next_retired, capacity=capacity, added=head.added,
    )  # fmt: skip
    state.random[:] = head.random
    state.statistics = structures.Statistics(*head.statistics)
    more = buffer[kept:]  # if the job file's capacity is smaller now
    parts = [
        _Part(constants.PLACE_BUFFER, file, buffer[:kept]),
        _Part(constants.PLACE_WAITING, file, np.concatenate([more[~file.seen[more]], waiting])),
        _Part(constants.PLACE_RETIRED, file, retired),
        _Part(constants.PLACE_VALIDATION, file, validation),
    ]
    return state, parts


def _unseen(plan: Plan, samples: int) -> int:
    """Return the number of undrawn samples in the buffer; only a reservoir counts them, as others drop drawn ones."""
    return samples if plan.policy == "reservoir" else 0


def _deal(plan: Plan, files: Sequence[TrainerFile], index: int) -> tuple[structures.Snapshot, list[_Part]]:
    """Fill this trainer's buffer with its share: samples never drawn, then those drawn before, while there is room.

    All trainers get the same number of samples to draw. The library would replace those drawn before anyway. Any drawn
    samples may be kept for the repeats at the end.
    """
    statistics = np.zeros(len(files[0].head.statistics), np.int64)
    unseen, seen, rest = [], [], []
    room = plan.capacity if plan.capacity_in_bytes else plan.capacity // plan.samples_window
    n_unseen = n_seen = 0
    dealt = trainers_for(plan, files, [_undrawn(file, *_places(file)[:2]) for file in files])
    for number, file in enumerate(files):
        if number % plan.first_trainers == index:
            statistics += file.head.statistics
        buffer, waiting, _, validation = (rows[dealt[number][rows] == index] for rows in _places(file))
        new = _undrawn(file, buffer, waiting)
        kept, room = _fitting(plan, file, new, room)
        unseen.append(_Part(constants.PLACE_BUFFER, file, new[:kept]))
        rest += [_Part(constants.PLACE_WAITING, file, new[kept:]), _Part(constants.PLACE_VALIDATION, file, validation)]
        n_unseen += kept
        seen.append(_Part(constants.PLACE_BUFFER, file, buffer[file.seen[buffer]]))
    for number, part in enumerate(seen):
        kept, room = _fitting(plan, part.file, part.rows, room)
        seen[number] = part._replace(rows=part.rows[:kept])
        n_seen += kept
    like = files[index % len(files)]
    rest.append(_Part(constants.PLACE_RETIRED, like, _places(like)[constants.PLACE_RETIRED]))
    state = structures.Snapshot(
        batch=like.head.batch, batches_of_all=like.head.batches_of_all, unseen=_unseen(plan, n_unseen),
        capacity=plan.capacity, added=n_unseen + n_seen,
        statistics=structures.Statistics(*statistics.tolist()),
    )  # fmt: skip
    return state, [*unseen, *seen, *rest]


def _undrawn(file: TrainerFile, buffer: _Rows, waiting: _Rows) -> _Rows:
    return np.concatenate([buffer[~file.seen[buffer]], waiting])


def _fitting(plan: Plan, file: TrainerFile, rows: _Rows, room: int) -> tuple[int, int]:
    """Return how many samples, from the first of these rows on, fit into a room, and the rest of the room.

    The room is a number of samples or bytes. Steps that windows share are counted repeatedly: they need fewer bytes.
    """
    if not plan.capacity_in_bytes:
        kept = min(len(rows), room)
        return kept, room - kept
    alike = sum(field.nbytes for field in plan.step_fields if not field.length) + 8 * len(plan.lengths)
    of_step = np.full(len(file.numbers[plan.lengths[0].name]), alike, np.int64)
    for field in plan.step_fields:
        if field.length:
            of_step += field.nbytes * file.numbers[field.length]
    sizes = of_step[rows] if plan.samples_window == 1 else of_step[file.windows[rows]].sum(axis=1)
    ends = np.cumsum(sizes)
    kept = int(np.searchsorted(ends, room, "right"))
    return kept, room - (int(ends[kept - 1]) if kept else 0)


def _put(plan: Plan, library: Library, part: _Part, held: RestoredConstants) -> None:
    """Pass samples to the library, a piece of the file at a time."""
    window = max(1, _READ_BYTES // max(1, _mean_bytes(plan, part.file)))
    start = 0
    while start < len(part.rows):
        first = int(part.rows[start])
        end = int(np.searchsorted(part.rows, first + window))
        rows = part.rows[start:end] - first
        last = int(part.rows[end - 1]) + 1
        nothing = np.empty(0, np.uint8)
        fields = [
            nothing if f.per_simulation else np.ascontiguousarray(part.file.fields(f, first, rows)) for f in plan.fields
        ]
        others = [part.file.rows(name, first, last)[rows] for name in ("parameters", "time", "step", "simulation")]
        others = [np.ascontiguousarray(array) for array in others]
        numbers = np.empty((len(rows), len(plan.numbers)), np.int64)
        for column, name in enumerate(plan.numbers):
            numbers[:, column] = part.file.numbers[name][first:last][rows]
        pointers = (ctypes.c_void_p * len(fields))(*(array.ctypes.data for array in fields))
        addresses = [array.ctypes.data for array in (*others, numbers)]
        constants_of = held.addresses(part.file, first + rows) if plan.constants else None
        addresses.append(0 if constants_of is None else constants_of.ctypes.data)
        check(library, library.mpidata_trainer_restore_samples(part.place, len(rows), pointers, *addresses))
        start = end


def _mean_bytes(plan: Plan, file: TrainerFile) -> int:
    """Mean number of bytes of a step's values in a file."""
    fields = plan.step_fields
    of = [float(file.numbers[f.length].mean()) if f.length and len(file.step) else 1.0 for f in fields]
    return math.ceil(sum(field.nbytes * extent for field, extent in zip(fields, of, strict=True)))


def _put_windows(plan: Plan, library: Library, parts: Sequence[_Part], held: RestoredConstants) -> None:
    """Pass the steps of all windows of each file, each once, to the library, and then the windows."""
    ends, rows_of = 0, dict[TrainerFile, tuple[_Rows, int]]()
    for file in {id(part.file): part.file for part in parts}.values():
        windows = np.concatenate([part.rows for part in parts if part.file is file])
        rows = np.unique(file.windows[windows])
        _put(plan, library, _Part(constants.PLACE_NONE, file, rows), held)
        rows_of[file] = rows, ends
        ends += len(rows)
    for part in parts:
        rows, first = rows_of[part.file]
        steps = np.ascontiguousarray(first + np.searchsorted(rows, part.file.windows[part.rows]), np.int64)
        check(library, library.mpidata_trainer_restore_windows(part.place, len(steps), _address(steps)))


def _restore_ledger(plan: Plan, library: Library, files: Sequence[TrainerFile], index: int, same: bool) -> None:
    steps = complete_steps([file.ledger for file in files], files[0].head.by_step, files[0].head.span)
    check(library, library.mpidata_trainer_restore_ledger(_address(steps)))
    for number, file in enumerate(files):
        by_step = file.head.by_step
        if same and number != index and not by_step:
            continue
        # Every received step of incomplete simulations is needed, because these run again.
        simulation, step = received_steps(file.ledger, number, len(files), steps < 0, plan.samples_run, by_step)
        mine = (trainer_of(plan, simulation, step) == index) | bool(plan.trainers_at_least)
        simulation, step = (np.ascontiguousarray(array[mine]) for array in (simulation, step))
        address = (_address(simulation), _address(step))
        check(library, library.mpidata_trainer_restore_received(len(step), *address))
    if plan.trainers_at_least:
        _restore_elsewhere(plan, library, files, index)


def _restore_elsewhere(plan: Plan, library: Library, files: Sequence[TrainerFile], index: int) -> None:
    """Note the validation and undrawn samples of other trainers, which come again if one of these dies."""
    for file in files:
        buffer, waiting, _, validation = _places(file)
        rows = np.concatenate([_undrawn(file, buffer, waiting), validation])
        rows = rows[trainer_of(plan, file.simulation[rows], file.step[rows]) != index]
        simulation, step = (np.ascontiguousarray(array[rows], np.int64) for array in (file.simulation, file.step))
        check(library, library.mpidata_trainer_restore_elsewhere(len(rows), _address(simulation), _address(step)))


def _restore_scales(plan: Plan, library: Library, files: Sequence[TrainerFile], index: int) -> None:
    """Restore statistics: those of each file go to one trainer; with more trainers than files, some get none."""
    parts = [file.scales(plan.n_moments) for number, file in enumerate(files) if number % plan.first_trainers == index]
    if parts:
        merged = merge(parts)
        check(library, library.mpidata_trainer_restore_scales(_address(merged)))


def _address(array: NDArray[Any]) -> int:
    address: int = array.ctypes.data
    return address
