"""The recorder of a trainer: a thread that writes received samples from the library's queue to a file."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import math
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpidata.errors import MpidataError
from mpidata.native import constants, structures
from mpidata.native.library import Library, check
from mpidata.record.constants import ConstantsToRecord
from mpidata.record.file import RecordFile, Rows
from mpidata.record.layout import Header
from mpidata.record.recorded_steps import RecordedSteps, check_owner
from mpidata.run.own_files import FOLDER_MODE
from mpidata.run.plan import Plan

__all__ = ["Recorder"]

# Most that may wait to be written, in bytes, or two samples if those are larger; and in samples.
_QUEUE_BYTES = 256 << 20
_QUEUE_SAMPLES = 1 << 16
# Most that is taken from the queue, and released, at once.
_TAKE_BYTES = 8 << 20
_TAKE_SAMPLES = 4096
# Longest time that a sample waits for further ones.
_WAIT_S = 0.1
_SLOW_S = 0.1


class Recorder:
    """Records the samples that this trainer receives.

    Parameters
    ----------
    plan : Plan
        With a `record_path`.
    library : Library
        Not yet opened as a trainer: recording must be set up before the first sample arrives.
    trainer : int
        Number of this trainer.

    Raises
    ------
    MpidataError
        The record's folder or file cannot be created, or belongs to another run.

    Notes
    -----
    Thread-safe. No method raises if the disk fails: recording then stops, the log reports it, and training continues.
    """

    def __init__(self, plan: Plan, library: Library, trainer: int) -> None:
        assert plan.record_path is not None
        self.folder: Path = plan.record_path
        self._plan = plan
        self._library = library
        header = Header.of(plan, trainer)
        try:
            self.folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            self._earlier = RecordedSteps(self.folder, header, plan.trainers if plan.samples_window == 1 else 0)
            with _held(self.folder):
                check_owner(self.folder, header)
                self._file = RecordFile(_free_name(self.folder, trainer), header)
        except (OSError, RuntimeError) as error:
            raise MpidataError(
                f"The record cannot be written to {self.folder}: {error}. Set another `record.path` in the job file."
            ) from None
        self._constants = ConstantsToRecord(plan, library, header) if plan.constants else None
        self._thread = threading.Thread(target=self._run, name="mpidata record", daemon=True)
        self._written = threading.Condition()  # guards the attributes below
        self._finishing = False
        self._over = False
        self._error = ""
        self._broken: OSError | None = None
        self._said_slow = False
        skip = plan.record_when_slow == "skip"
        check(library, library.mpidata_trainer_record_start(plan.record_every, _QUEUE_SAMPLES, _QUEUE_BYTES, skip))

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def start(self) -> None:
        """Start to write; the library is open now."""
        self._thread.start()

    def flush(self, timeout_s: float = math.inf) -> bool:
        """Wait until all samples that have arrived so far are on the disk.

        Returns
        -------
        bool
            False if they are not within the time, or if recording has stopped, which the scheduler then knows.
        """
        wanted = self._figures().queued
        deadline = time.monotonic() + timeout_s
        with self._written:
            while self._figures().written < wanted and not self._over:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._written.wait(min(left, 60.0))
            if self._over:
                return False
        try:
            self._file.sync()
        except OSError as error:
            with self._written:
                self._broken = error  # for the writing thread: the samples that it is writing must stay pinned
                self._written.wait_for(lambda: self._over, min(timeout_s, threading.TIMEOUT_MAX))
            return False
        return True

    def finish(self, timeout_s: float = math.inf) -> None:
        """Write the samples that have arrived, close the file, and report the numbers. For the end of the stream."""
        with self._written:
            if self._finishing:
                return
            self._finishing = True
        if self._thread.is_alive():
            self._thread.join(min(timeout_s, threading.TIMEOUT_MAX))
        figures = self._figures()
        if not self._over:
            self._error = f"the job ended before {figures.queued - figures.written} samples were written"
        self._report(figures)

    def _figures(self) -> structures.RecordFigures:
        figures = structures.RecordFigures()
        check(self._library, self._library.mpidata_trainer_record_figures(ctypes.byref(figures)))
        return figures

    def _run(self) -> None:
        try:
            while self._turn():
                self._watch()
            self._file.close()
            self._library.mpidata_trainer_record_stop(None)
        except Exception as error:  # must not disturb the training, whatever it is
            self._error = _reason(error)
            with contextlib.suppress(OSError):
                self._file.abandon()
            sentence = (
                f"Recording to {self.path} has stopped: {self._error}. The training continues without recording, and "
                "the run counts as failed. For the next run, free disk space or set another `record.path`."
            )
            self._library.mpidata_trainer_record_stop(sentence.encode())
            _say(sentence)
        with self._written:
            self._over = True
            self._written.notify_all()

    def _turn(self) -> bool:
        """Write some samples; False when there are none left."""
        if self._broken is not None:
            raise self._broken
        columns = {
            name: np.empty(_TAKE_SAMPLES, dtype)
            for name, dtype in (("time", "f8"), ("step", "i8"), ("simulation", "i8"))
        }
        parameters = np.empty((_TAKE_SAMPLES, len(self._plan.parameters)))
        count = ctypes.c_int64()
        addresses = [array.ctypes.data for array in (parameters, *columns.values())]
        finishing = self._finishing
        status = self._library.mpidata_trainer_record_take(
            _TAKE_SAMPLES, _TAKE_BYTES, *addresses, ctypes.byref(count), 0.0 if finishing else _WAIT_S
        )
        if status == constants.ERR_AGAIN:
            return not finishing
        check(self._library, status)
        n = count.value
        simulation = columns["simulation"][:n]
        validation = (simulation >= self._plan.simulations).astype(np.uint8)
        step, time_ = columns["step"][:n], columns["time"][:n]
        of = self._constants.of_taken(n) if self._constants else None
        self._append(Rows(simulation, step, time_, validation, parameters[:n], self._numbers(n)), of)
        check(self._library, self._library.mpidata_trainer_record_release())
        with self._written:
            self._written.notify_all()
        return True

    def _numbers(self, count: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the samples taken."""
        numbers = np.empty((count, len(self._plan.numbers)), np.int64)
        check(self._library, self._library.mpidata_trainer_record_numbers(numbers.ctypes.data))
        return numbers

    def _append(self, rows: Rows, constants_of: npt.NDArray[np.uintp] | None) -> None:
        """Write the samples that no earlier start of the run has recorded, and their constants."""
        count = len(rows.simulation)
        old = self._earlier.has(rows.simulation, rows.step) if self._earlier else np.zeros(count, bool)
        edges = np.flatnonzero(np.diff(np.concatenate([[True], old, [True]]).astype(np.int8)))
        for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            part = rows.part(first, end)
            if self._constants and constants_of is not None:
                part = part._replace(constants=self._constants.write(self._file, constants_of[first:end]))
            self._file.append(part, lambda *place, f=first: self._write(f, *place))

    def _write(self, skipped: int, descriptor: int, field: int, first: int, count: int, offset: int) -> None:
        failed = self._library.mpidata_trainer_record_write(descriptor, field, skipped + first, count, offset)
        if failed:
            raise OSError(failed, os.strerror(failed))

    def _watch(self) -> None:
        """Print one notice if the disk is too slow."""
        if self._said_slow:
            return
        figures = self._figures()
        if figures.skipped:
            _say(
                f"samples arrive faster than the disk can write them: some are not recorded to {self.path} "
                "(record.when_slow: skip)."
            )
        elif figures.slowed_s > _SLOW_S:
            _say(
                f"samples arrive faster than the disk can write them: recording to {self.path} makes the solvers wait "
                "(record.when_slow: slow_down)."
            )
        self._said_slow = bool(figures.skipped) or figures.slowed_s > _SLOW_S

    def _report(self, figures: structures.RecordFigures) -> None:
        samples = self._earlier.count + self._file.rows
        values = {"samples": samples, "skipped": figures.skipped, "slowed_s": round(figures.slowed_s, 3)}
        for name, value in values.items():
            self._library.mpidata_trainer_report(f"record.{name}".encode(), float(value))
        _say(
            f"recorded {self._file.rows} samples to {self.path}"
            + (f", {figures.skipped} were skipped" if figures.skipped else "")
            + (f", the solvers waited for the disk for {figures.slowed_s:.1f} s" if figures.slowed_s > _SLOW_S else "")
            + (f"; the record is incomplete: {self._error}" if self._error else "")
            + "."
        )


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock the folder against other writers: two runs that start at once would not see each other's files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _free_name(folder: Path, trainer: int) -> Path:
    """Return `trainer-0000.h5`, or `trainer-0000-2.h5` and so on if the run is resumed."""
    names = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := folder / f"trainer-{trainer:04d}{name}.h5").exists())


def _reason(error: Exception) -> str:
    number = re.search(r"errno = (\d+)", str(error))  # in messages of HDF5
    if number:
        return os.strerror(int(number[1]))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().rstrip(".") or type(error).__name__


def _say(sentence: str) -> None:
    print(f"mpidata: {sentence}", file=sys.stderr, flush=True)
