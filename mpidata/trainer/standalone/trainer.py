"""A trainer without a job: the same buffer and draws as in one, without MPI."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path

import numpy.random  # noqa: F401, numpy loads it at first use: a fork while the thread does so would hang

from mpidata.native import constants, structures
from mpidata.native.library import Library, check
from mpidata.native.loading import load
from mpidata.native.uncaught import describe, fail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.trainer.standalone.sources import Sample, Source, read_source
from mpidata.trainer.trainer import SLICE_S, Trainer

__all__ = ["TRY", "AloneTrainer", "open_alone"]

TRY = "MPIDATA_TRY"
"""Environment variable with the folder that `mpidata try` has prepared."""


def open_alone(folder: Path) -> AloneTrainer:
    """Open the trainer that a folder of `mpidata try` describes."""
    plan = Plan.read(RunFolder(folder).plan)
    source, library = read_source(folder, plan) if plan.has_stream else None, load()
    check(library, library.mpidata_trainer_open_alone(plan.text().encode()))
    return AloneTrainer(plan, library, source)


class AloneTrainer(Trainer):
    """The only trainer, which gets samples from its own thread.

    Parameters
    ----------
    plan : Plan
        The plan of a job with one trainer, which need not run.
    library : Library
        The library, opened alone.
    source : Source or None
        The source of the samples; None in a job without a stream.
    """

    def __init__(self, plan: Plan, library: Library, source: Source | None) -> None:
        super().__init__(plan, library, None)
        self.is_alone = True
        self._source = source
        self._error = ""
        self._giving = threading.Thread(target=self._give_all, name="mpidata-try", daemon=True)

    def begin(self) -> None:
        """Start to receive samples."""
        if self._source is not None:
            self._giving.start()

    def fail(self, sentence: str) -> None:
        """Close without a report: there is no scheduler."""
        self.closed = self._parted = True

    def _part(self, recorder_s: float, close_s: float) -> int:
        """Print what was drawn; waits only for the sample that is being read or made."""
        if self._giving.is_alive() and threading.current_thread() is not self._giving:
            self._giving.join()  # torch ends the process if this thread outlives Python
        if self.turns.given:
            print(f"mpidata try: {self.turns.given} batches taken from the loader.", file=sys.stderr, flush=True)
        if self._source is None:
            return 0
        figures = structures.Statistics()
        check(self.library, self.library.mpidata_trainer_statistics(ctypes.byref(figures)))
        print(f"mpidata try: {self._progress()} drawn, of {figures.received} samples.", file=sys.stderr, flush=True)
        if self._error:
            fail(f"mpidata try: the samples are incomplete: {self._error}")
        return 0

    def _give_all(self) -> None:
        assert self._source is not None
        try:
            if all(self._give(sample) for sample in self._source.samples(validation=True)):
                check(self.library, self.library.mpidata_trainer_gave_validation())
                self._give_training(self._source)
        except Exception as error:
            self._error = describe(error, None)
            print(f"mpidata try: no further samples: {self._error}", file=sys.stderr, flush=True)
        finally:
            self.library.mpidata_trainer_end_alone()

    def _give_training(self, source: Source) -> None:
        told: set[int] = set()
        for sample in source.samples(validation=False):
            if sample.simulation not in told and (steps := source.steps(sample.simulation)) is not None:
                check(self.library, self.library.mpidata_trainer_gave_all(sample.simulation, steps))
            told.add(sample.simulation)
            if not self._give(sample):
                return

    def _give(self, sample: Sample) -> bool:
        """Pass on a sample; False if no more are wanted."""
        places = [field.ctypes.data for field in sample.fields]
        fields = (ctypes.c_void_p * len(places))(*places)
        status = constants.ERR_AGAIN
        while status == constants.ERR_AGAIN and not self.closed:
            status = self.library.mpidata_trainer_give(
                fields,
                sample.numbers.ctypes.data,
                sample.parameters.ctypes.data,
                sample.time,
                sample.step,
                sample.simulation,
                sample.by_try,
                SLICE_S,
            )
        if status not in (constants.ERR_AGAIN, constants.END):
            check(self.library, status)
        return status == 0
