"""Made-up trainer files of a checkpoint, and a library that keeps what is restored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fake_library import make_plan, memory

from mpidata.checkpoint.files import path_of, trainer_file
from mpidata.checkpoint.trainer_file import Head, write
from mpidata.dtypes import numpy_dtype
from mpidata.native.constants import PLACE_VALIDATION
from mpidata.native.structures import Snapshot
from mpidata.run.plan import Plan

Sample = tuple[int, int]  # simulation, step

SIMULATIONS, VALIDATION = 6, 1


def plan_of(run: Path, trainers: int, **changes: Any) -> Plan:
    values = dict(
        run=run, trainers=trainers, world=1 + trainers + 2, simulations=SIMULATIONS, validation=VALIDATION,
        policy="reservoir", capacity=8, checkpoint=5, attempt=2,
    )  # fmt: skip
    return make_plan(**{**values, **changes})


def number(sample: Sample) -> int:
    return 100 * sample[0] + sample[1]


def write_trainer(
    plan: Plan,
    trainer: int,
    places: Sequence[Sequence[Sample]],
    unseen: int = 0,
    ledger: dict[int, tuple[int, int, Sequence[int]]] | None = None,
    state: dict[str, bytes] | None = None,
    **changes: Any,
) -> Path:
    """Write a trainer's file. ledger: for each simulation its steps (-1: unknown), whole, and more steps received."""
    count = plan.simulations + plan.validation
    samples = [sample for place in places for sample in place]
    numbers = np.array([number(sample) for sample in samples], np.float64)
    values: dict[str, Any] = dict(
        number=plan.checkpoint, trainer=trainer, trainers=plan.trainers, batch=12,
        count=tuple(len(place) for place in places), unseen=unseen, next_retired=0, capacity=plan.capacity,
        plan_capacity=plan.capacity, added=40, random=(1, 2, 3, 2**64 - 1),
        statistics=(10 + trainer, 4, 3, 12, 5, 8, 90),
        policy=plan.policy, simulations=plan.simulations, batches_of_all=12 * plan.trainers,
    )  # fmt: skip
    seen = np.zeros(len(samples), np.uint8)
    seen[unseen : len(places[0])] = plan.policy == "reservoir"
    steps, whole, complete, words = np.full(count, -1), np.zeros(count, int), np.zeros(count, int), np.zeros(count, int)
    bits: list[int] = []
    for simulation, (total, below, received) in sorted((ledger or {}).items()):
        steps[simulation], whole[simulation] = total, below
        complete[simulation] = 0 <= total <= below
        own = [step if changes.get("by_step") else step // plan.trainers for step in received]
        words[simulation] = max([bit // 64 + 1 for bit in own], default=0)
        bits += [sum(1 << bit - 64 * word for bit in own if bit // 64 == word) for word in range(words[simulation])]
    arrays = {
        "parameters": np.stack([numbers, -numbers], axis=1),
        "time": 0.5 * numbers,
        "step": np.array([step for _, step in samples], np.int64),
        "simulation": np.array([simulation for simulation, _ in samples], np.int64),
        "seen": seen,
        "ledger/steps": steps.astype(np.int64),
        "ledger/whole": whole.astype(np.int64),
        "ledger/complete": complete.astype(np.uint8),
        "ledger/words": words.astype(np.int64),
        "ledger/bits": np.array(bits, np.uint64),
    }
    arrays |= {f"state/{name}": np.frombuffer(contents, np.uint8) for name, contents in (state or {}).items()}
    folder = path_of(plan.run / "checkpoints", plan.checkpoint)
    folder.mkdir(parents=True, exist_ok=True)

    def write_fields(file: int, offsets: list[int]) -> None:
        import os

        for field, offset in zip(plan.fields, offsets, strict=True):
            contents = np.empty((len(samples), *field.shape), numpy_dtype(field.dtype))
            contents[...] = numbers.reshape(-1, *[1] * len(field.shape))
            os.pwrite(file, contents.tobytes(), offset)

    path = folder / trainer_file(trainer)
    write(path, Head(**{**values, **changes}), plan.fields, arrays, write_fields)
    return path


class RestoringLibrary:
    """Keeps what it receives before the start, with the samples of each place in a list."""

    def __init__(self, plan: Plan, index: int) -> None:
        self.plan = plan
        self.index = index
        self.state: Any = None
        self.stream = -1
        self.places: list[list[Sample]] = [[], [], [], []]
        self.complete: dict[int, int] = {}
        self.received: set[Sample] = set()
        self.elsewhere: set[Sample] = set()

    def mpidata_trainer_restore(self, state: Any, stream: int) -> int:
        self.state, self.stream = Snapshot.from_buffer_copy(state._obj), stream
        return 0

    def mpidata_trainer_restore_samples(
        self,
        place: int,
        count: int,
        fields: Any,
        parameters: int,
        times: int,
        steps: int,
        simulations: int,
        numbers: int,
        constants: int,
    ) -> int:
        assert not constants
        step, simulation = memory(steps, (count,), "int64"), memory(simulations, (count,), "int64")
        numbers = 100 * simulation + step
        for field, address in zip(self.plan.fields, fields, strict=True):
            dtype = numpy_dtype(field.dtype)
            values = memory(address, (count, *field.shape), dtype).reshape(count, -1)
            assert np.array_equal(values, np.repeat(numbers[:, None], values.shape[1], axis=1).astype(dtype))
        assert np.array_equal(memory(parameters, (count, 2), "float64"), np.stack([numbers, -numbers], axis=1))
        assert np.array_equal(memory(times, (count,), "float64"), 0.5 * numbers)
        # As the library does: any trainer may have received a training sample.
        assert place != PLACE_VALIDATION or set(((simulation + step) % self.plan.trainers).tolist()) <= {self.index}
        self.places[place] += zip(simulation.tolist(), step.tolist(), strict=True)
        return 0

    def mpidata_trainer_restore_ledger(self, steps: int) -> int:
        values = memory(steps, (SIMULATIONS + VALIDATION,), "int64").tolist()
        self.complete = {simulation: total for simulation, total in enumerate(values) if total >= 0}
        return 0

    def mpidata_trainer_restore_received(self, count: int, simulations: int, steps: int) -> int:
        if count:
            pairs = zip(memory(simulations, (count,), "int64"), memory(steps, (count,), "int64"), strict=True)
            new = {(int(simulation), int(step)) for simulation, step in pairs}
            assert len(new) == count
            self.received |= new
        return 0

    def mpidata_trainer_restore_elsewhere(self, count: int, simulations: int, steps: int) -> int:
        assert self.plan.trainers_at_least
        if count:
            pairs = zip(memory(simulations, (count,), "int64"), memory(steps, (count,), "int64"), strict=True)
            self.elsewhere |= {(int(simulation), int(step)) for simulation, step in pairs}
        return 0
