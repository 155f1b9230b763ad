"""A trainer that records, without MPI, and the check of what it has recorded."""

import os
import threading
from collections import deque

import numpy as np
from fake_library import FakeLibrary, memory

from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.native.constants import SUCCESS
from mpidata.record.writer import Recorder

__all__ = ["SAMPLES", "RecordLibrary", "check", "content", "record"]

SAMPLES = [(simulation, step) for simulation in range(4) for step in range(20)]  # simulation 3 is the validation


class RecordLibrary(FakeLibrary):
    """With the queue of the library; a test puts samples in."""

    def __init__(self, plan):
        super().__init__(plan)
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
        name, dtype, shape = self.plan.fields[field].name, self.plan.fields[field].dtype, self.plan.fields[field].shape
        for i, (simulation, step) in enumerate(self.taken[first : first + count]):
            values = content(name, simulation, step, shape, dtype).tobytes()
            os.pwrite(file, values, offset + i * len(values))
        return 0

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


def content(name, simulation, step, shape, dtype):
    return (1000 * simulation + 10 * step + np.arange(np.prod(shape, dtype=int)).reshape(shape)).astype(dtype)


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
        for field in dataset.fields.values():
            values = sample[field.name]
            assert values.shape == field.shape and str(values.dtype) == f"torch.{field.dtype}"
            assert np.array_equal(values, content(field.name, simulation, step, field.shape, field.dtype))
