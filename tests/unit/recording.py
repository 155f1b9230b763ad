"""A trainer that records without MPI, and the check of its record."""

import dataclasses
import os
import threading
from collections import deque

import numpy as np
from fake_library import FakeLibrary, make_plan, memory

from mpidata.dtypes import numpy_dtype
from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.native.constants import SUCCESS
from mpidata.record.writer import Recorder
from mpidata.run.plan import Field, Length
from mpidata.tensors import array_of

__all__ = [
    "FIELDS_WITH_CONSTANTS",
    "FIELDS_WITH_LENGTHS",
    "SAMPLES",
    "RecordLibrary",
    "check",
    "content",
    "is_given",
    "lengths_of",
    "make_plan_with_constants",
    "make_plan_with_lengths",
    "record",
    "values_of",
]

SAMPLES = [(simulation, step) for simulation in range(4) for step in range(20)]  # simulation 3 is for validation
FIELDS_WITH_LENGTHS = (
    Field("xy", "float32", ("nodes", 2)),
    Field("edge_index", "int64", (2, "edges"), "nodes", 1),
    Field("u", "float64", ("nodes",)),
    Field("corners", "int32", ("edges", 3), "nodes"),
    Field("flags", "uint8", (3, "nodes", 2)),
    Field("wind", "float32", (3,)),
    Field("spectrum", "complex64", (2, "edges")),
    Field("weights", "bfloat16", ("nodes", 2)),
    Field("inside", "bool", ("nodes",)),
    Field("pressure", "float32", ("nodes",), optional=True),
    Field("drag", "complex128", (2,), optional=True),
)


def make_plan_with_lengths(**changes):
    return make_plan(fields=FIELDS_WITH_LENGTHS, lengths=(Length("nodes", 6000), Length("edges")), **changes)


# The mesh of a simulation, on which the fields of its steps are defined.
FIELDS_WITH_CONSTANTS = (
    *(dataclasses.replace(field, per_simulation=True) for field in FIELDS_WITH_LENGTHS[:3]),
    Field("mask", "bool", ("nodes",), optional=True, per_simulation=True),
    Field("area", "float64", (3,), optional=True, per_simulation=True),
    Field("scale", "bfloat16", (), per_simulation=True),
    *FIELDS_WITH_LENGTHS[5:],
)


def make_plan_with_constants(**changes):
    return make_plan(fields=FIELDS_WITH_CONSTANTS, lengths=(Length("nodes", 6000), Length("edges")), **changes)


class RecordLibrary(FakeLibrary):
    """Has the library's queue, into which a test puts samples. Try 2 starts at step 12 of each simulation."""

    def __init__(self, plan):
        super().__init__(plan)
        self.held: dict[int, list[np.ndarray]] = {}
        self.queue: deque[tuple[int, int]] = deque()
        self.taken: list[tuple[int, int]] = []
        self.queued = self.written = self.skipped = 0
        self.slowed_s = 0.0
        self.error = 0
        self.why = b"it has not stopped"
        self.writes = 0
        self.limit = None
        self.lock = threading.Condition()

    def come(self, samples):
        with self.lock:
            self.queue.extend(samples)
            self.queued += len(samples)
            self.lock.notify()

    def mpidata_trainer_record_start(self, every, samples, size, skip):
        self.limit = (every, samples, size, skip)
        return SUCCESS

    def mpidata_trainer_record_take(self, most, most_bytes, parameters, times, steps, simulations, count, timeout):
        with self.lock:
            if not self.queue:
                self.lock.wait(min(timeout, 0.01))
            self.taken = [self.queue.popleft() for _ in range(min(most, len(self.queue), 7))]
        n = count._obj.value = len(self.taken)
        if not n:
            return AGAIN
        simulation, step = np.array(self.taken).T
        memory(parameters, (n, 2), "float64")[...] = np.stack([simulation, -step], axis=1)
        memory(times, (n,), "float64")[...] = 0.5 * step
        memory(steps, (n,), "int64")[...] = step
        memory(simulations, (n,), "int64")[...] = simulation
        return SUCCESS

    def mpidata_trainer_record_write(self, file, field, first, count, offset):
        self.writes += 1
        if self.error:
            return self.error
        of = self.plan.fields[field]
        for simulation, step in self.taken[first : first + count]:
            values = values_of(of, lengths_of(self.plan.fields, simulation, step), simulation, step)
            offset += os.pwrite(file, values.tobytes(), offset)
        return 0

    def mpidata_trainer_record_numbers(self, numbers):
        lengths = [list(lengths_of(self.plan.fields, *sample).values()) for sample in self.taken]
        given = [[is_given(field, *sample) for field in self.plan.fields if field.optional] for sample in self.taken]
        memory(numbers, (len(self.taken), len(self.plan.numbers)), "int64")[...] = np.hstack([lengths, given])
        return SUCCESS

    def mpidata_trainer_record_constants(self, constants):
        of = [1 + 2 * simulation + (step >= 12) for simulation, step in self.taken]
        memory(constants, (len(of),), "u8")[...] = of
        return SUCCESS

    def mpidata_trainer_constants_look(self, address, values, numbers, simulation, by_try):
        simulation._obj.value, by_try._obj.value = divmod(address - 1, 2)
        step, fields = 12 * by_try._obj.value, self.plan.fields
        lengths = lengths_of(fields, simulation._obj.value, step)
        given = [is_given(field, simulation._obj.value, step) for field in fields if field.optional]
        memory(numbers, (len(self.plan.numbers),), "int64")[...] = [*lengths.values(), *given]
        arrays = [np.asarray(values_of(field, lengths, simulation._obj.value, step)) for field in fields]
        self.held[address] = arrays  # keeps them alive
        for number, field in enumerate(fields):
            wanted = field.per_simulation and is_given(field, simulation._obj.value, step)
            values[number] = arrays[number].ctypes.data if wanted else None
        return SUCCESS

    def mpidata_trainer_record_release(self):
        self.written += len(self.taken)
        self.taken = []
        return SUCCESS

    def mpidata_trainer_record_stop(self, why):
        self.written, self.queue = self.queued, deque()
        self.why = why
        return SUCCESS

    def mpidata_trainer_record_figures(self, figures):
        figures._obj.queued, figures._obj.written = self.queued, self.written
        figures._obj.skipped, figures._obj.slowed_s = self.skipped, self.slowed_s
        return SUCCESS


def lengths_of(fields, simulation, step):
    """Return a sample's lengths by name: 0 for a third of samples, few or many for others; no edges without nodes."""
    names = dict.fromkeys(field.length for field in fields if field.length)
    if any(field.per_simulation for field in fields):
        step = 12 * (step >= 12)
    chance = np.random.default_rng([simulation, step])
    lengths = {name: int(chance.choice([0, chance.integers(1, 5), chance.integers(1, 300)])) for name in names}
    return lengths | ({"edges": 0} if lengths.get("nodes") == 0 else {})


def is_given(field, simulation, step):
    """Return whether a field is put: optional ones are put in two of three samples."""
    step = 12 * (step >= 12) if field.per_simulation else step
    return not field.optional or (simulation + step + len(field.name)) % 3 > 0


def content(name, simulation, step, shape, dtype):
    values = 1000 * simulation + 10 * step + np.arange(np.prod(shape, dtype=int)).reshape(shape)
    if dtype == "bool":
        return values % 3 == 0
    return (values + 1j * step if "complex" in str(dtype) else values).astype(numpy_dtype(dtype))


def values_of(field, lengths, simulation, step):
    """Return a field's values in a sample: its content, indices within their length, or zeros if it is not given."""
    step = 12 * (step >= 12) if field.per_simulation else step
    values = content(field.name, simulation, step, field.extents(lengths), field.dtype)
    if field.index:
        values %= max(1, lengths[field.index])
    return values if is_given(field, simulation, step) else np.zeros_like(values)


def record(plan, samples, trainer=0, **library_values):
    library = RecordLibrary(plan)
    vars(library).update(library_values)
    recorder = Recorder(plan, library, trainer)
    recorder.start()
    library.come(samples)
    recorder.finish(10)
    return library


def check(dataset, samples):
    """Compare every element."""
    assert [(int(s["simulation"]), int(s["step"])) for s in dataset] == sorted(samples)
    for i in range(len(dataset)):
        sample = dataset[i]
        simulation, step = int(sample["simulation"]), int(sample["step"])
        assert sample["parameters"].tolist() == [simulation, -step] and sample["time"] == 0.5 * step
        lengths = lengths_of(dataset.fields.values(), simulation, step)
        assert {name: sample[name].item() for name in lengths} == lengths
        for field in dataset.fields.values():
            values = sample[field.name]
            assert values.shape == field.extents(lengths) and str(values.dtype) == f"torch.{field.dtype}"
            if field.optional:
                assert sample[f"{field.name}_given"].item() is is_given(field, simulation, step)
            assert np.array_equal(array_of(values), values_of(field, lengths, simulation, step)), field
