"""A trainer in this process without a job or MPI, that is given samples of fields with lengths, by the real library."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fake_library import make_plan

from mpidata.alone.sources import Sample
from mpidata.native.loading import load
from mpidata.run.plan import Field, Length, Plan
from mpidata.trainer import join as job
from mpidata.trainer.alone import AloneTrainer

SIMULATIONS, STEPS = 6, 11


def plan_of(fields: tuple[Field, ...], **changes: Any) -> Plan:
    """A job of one trainer with these fields."""
    lengths = tuple(Length(name) for name in dict.fromkeys(field.length for field in fields if field.length))
    values = dict(run=Path("/run"), policy="firo", capacity=60, watermark=4, groups=2, world=6, simulations=SIMULATIONS)
    return make_plan(**(values | dict(fields=fields, lengths=lengths, validation=1) | changes))


class Samples:
    """Random samples; each is a function of its simulation and step. `most` are the greatest lengths, from `least` on."""

    def __init__(self, plan: Plan, least: dict[str, int], most: dict[str, int]) -> None:
        self.plan, self.least, self.most = plan, least, most

    def of(self, simulation: int, step: int) -> Sample:
        chance = np.random.default_rng([simulation, step])
        lengths = {
            length.name: int(chance.integers(self.least[length.name], self.most[length.name] + 1))
            for length in self.plan.lengths
        }
        fields = []
        for field in self.plan.fields:
            shape, below = field.extents(lengths), lengths.get(field.index, 100)
            fields.append(np.ascontiguousarray(chance.integers(0, max(1, below), shape)).astype(field.dtype))
        parameters = chance.random(len(self.plan.parameters))
        return Sample(simulation, step, 0.5 * step, parameters, fields, np.array(list(lengths.values()), np.int64))

    def samples(self, validation: bool) -> Iterator[Sample]:
        first, end = (SIMULATIONS, SIMULATIONS + 1) if validation else (0, SIMULATIONS)
        return (self.of(simulation, step) for simulation in range(first, end) for step in range(STEPS))

    def steps(self, simulation: int) -> int:
        return STEPS


@contextlib.contextmanager
def alone(samples: Samples) -> Iterator[AloneTrainer]:
    """Make this process the trainer, until the end."""
    library = load()
    assert library.mpidata_trainer_open_alone(samples.plan.text().encode()) == 0
    trainer, before = AloneTrainer(samples.plan, library, samples), job._trainer
    job._trainer = trainer
    trainer.begin()
    try:
        yield trainer
    finally:
        trainer.close()
        trainer._giving.join()
        job._trainer = before
        assert library.mpidata_trainer_free() == 0
