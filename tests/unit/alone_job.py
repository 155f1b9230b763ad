"""A trainer in this process without a job or MPI, which receives samples with lengths through the real library."""

import contextlib
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_library import make_plan

from mpidata.dtypes import numpy_dtype
from mpidata.native.loading import load
from mpidata.run.plan import Field, Length, Plan
from mpidata.trainer import join as job
from mpidata.trainer.standalone.sources import Sample
from mpidata.trainer.standalone.trainer import AloneTrainer

SIMULATIONS, STEPS = 6, 11


def plan_of(fields: tuple[Field, ...], **changes: Any) -> Plan:
    """The plan of a job of one trainer with these fields."""
    lengths = tuple(Length(name) for name in dict.fromkeys(field.length for field in fields if field.length))
    values = dict(run=Path("/run"), policy="firo", capacity=60, watermark=4, groups=2, world=6, simulations=SIMULATIONS)
    return make_plan(**(values | dict(fields=fields, lengths=lengths, validation=1) | changes))


class Samples:
    """Random samples, each a function of its simulation and step; lengths are between `least` and `most`."""

    def __init__(self, plan: Plan, least: dict[str, int], most: dict[str, int]) -> None:
        self.plan, self.least, self.most = plan, least, most

    def of(self, simulation: int, step: int) -> Sample:
        chance, once = np.random.default_rng([simulation, step]), np.random.default_rng([simulation, 1 << 20])
        constant = {field.length for field in self.plan.constants}
        lengths = {
            length.name: int(
                (once if length.name in constant else chance).integers(
                    self.least[length.name], self.most[length.name] + 1
                )
            )
            for length in self.plan.lengths
        }
        fields, given = [], list[int]()
        for field in self.plan.fields:
            shape, below, of = (
                field.extents(lengths),
                lengths.get(field.index, 100),
                once if field.per_simulation else chance,
            )
            fields.append(np.array(of.integers(0, max(1, below), shape)).astype(numpy_dtype(field.dtype)))
            if field.optional:
                given.append(int(of.integers(3) > 0))
                fields[-1][...] *= np.array(given[-1], fields[-1].dtype)
        parameters = chance.random(len(self.plan.parameters))
        return Sample(simulation, step, 0.5 * step, parameters, fields, np.array([*lengths.values(), *given], np.int64))

    def samples(self, validation: bool) -> Iterator[Sample]:
        first, end = (SIMULATIONS, SIMULATIONS + 1) if validation else (0, SIMULATIONS)
        return (self.of(simulation, step) for simulation in range(first, end) for step in range(STEPS))

    def steps(self, simulation: int) -> int:
        return STEPS


def alone(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a forked process: a process is a trainer only once, and a fork need not load torch."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            with os.fdopen(write, "w") as file, contextlib.suppress(BaseException):
                try:
                    if "torch" in sys.modules:
                        sys.modules["torch"].set_num_threads(1)  # OpenMP threads do not survive a fork
                    test(*arguments, **named)
                except BaseException:
                    file.write(traceback.format_exc())
            os._exit(0)
        os.close(write)
        try:
            with os.fdopen(read) as file:
                said = file.read()
            if said:
                pytest.fail(said, pytrace=False)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), f"The process of the test ended with status {status}."

    return run


def begin(samples: Samples) -> AloneTrainer:
    """Make this process the trainer, in a test that is `alone`."""
    library = load()
    assert library.mpidata_trainer_open_alone(samples.plan.text().encode()) == 0
    job._trainer = AloneTrainer(samples.plan, library, samples)
    job._trainer.begin()
    return job._trainer
