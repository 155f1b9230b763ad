"""A stand-in for libmpidata in one process: returns made-up samples and records its calls."""

import ctypes
import dataclasses
import time
from pathlib import Path

import numpy as np

from mpidata.dtypes import array_dtype
from mpidata.native.constants import DTYPES, END, SUCCESS
from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.native.event import NO_USAGE
from mpidata.native.structures import LOSSES
from mpidata.run.plan import Field, Plan, Program
from mpidata.trainer import join as job
from mpidata.trainer.trainer import Trainer

FIELDS = (Field("temperature", "float32", (2, 3)), Field("scalar", "int64", ()))
MISUSE = 4


def make_plan(**changes):
    values = dict(
        run=Path("/run"),
        folder=Path("/folder"),
        seed=1,
        world=4,
        trainers=1,
        groups=1,
        ranks_per_group=2,
        in_flight=4,
        simulations=3,
        validation=1,
        policy="fifo",
        capacity=10,
        watermark=1,
        tail="drop",
        parameters=("alpha", "beta"),
        fields=FIELDS,
        programs={role: Program(("python",)) for role in ("scheduler", "trainer", "solver")},
    )
    return Plan(**{**values, **changes})


def make_event(kind, **values):
    """Return an event of this class; values that are not given are neutral."""
    blank = {"simulation": -1, "statistics": (0,) * 8, "text": "", "usage": NO_USAGE}
    names = [field.name for field in dataclasses.fields(kind)]
    return kind(**{name: blank.get(name, 0) for name in names} | values)


def memory(address, shape, dtype):
    """Return an array over an address that was passed to the library."""
    size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype).reshape(shape)


VAIN_DRAW_S = 0.01  # the duration of a draw that returns nothing


class FakeLibrary:
    """Sample n has n in every element of its fields; it is step n % 5 of simulation n // 5."""

    def __init__(self, plan=None, samples=12, again=0, validation=0, simulations=2, end_at_step=None):
        self.plan = plan or make_plan()
        self.samples = samples
        self.again = again  # the number of first draws that return nothing
        self.n_validation = validation
        self.simulations = simulations
        self.end_at_step = end_at_step
        self.count = 0
        self.drawn = 0
        self.calls = []
        self.stopped = []
        self.reports = []
        self.losses = []  # the rows of each call
        self.losses_status = SUCCESS
        self.errors = []
        self.puts = []
        self.steps = []
        self.kept = []
        self.lent = []
        self.draw_status = SUCCESS
        self.known_steps = -1
        self.shares = []  # samples of each global batch, and the number of trainers
        self.pages = None  # a list: batches are lent without a copy, and return to it
        self.ahead = 0  # batches drawn ahead that the loop has not received
        self.most_ahead = 0

    last_error = b"The sentence. Where. What to do."

    def mpidata_last_error(self):
        return self.last_error

    def mpidata_misuse(self, status, what, advice):
        self.last_error = what + b". Where. " + advice
        return status

    def mpidata_report_error(self, sentence):
        self.errors.append(sentence.decode())
        return SUCCESS

    # trainer

    def mpidata_trainer_start(self, count):
        self.calls.append("start")
        self.count = count
        return SUCCESS

    def mpidata_trainer_start_together(self, total):
        self.calls.append(f"start together {total}")
        return SUCCESS

    def mpidata_trainer_draw_share(self, count, trainers, timeout):
        if not self.shares or self.drawn + self.shares[0][0] > self.samples:
            return END
        self.count, trainers._obj.value = self.shares.pop(0)
        count._obj.value = self.count
        return SUCCESS

    def _refuses(self, timeout):
        """Return 0 if a draw gives a batch, else its status, which is always AGAIN ahead of the loop."""
        ahead, status = timeout < 0, self.draw_status
        if not status and self.again:
            self.again -= 1
            time.sleep(0 if ahead else min(timeout, VAIN_DRAW_S))
            status = AGAIN
        elif not status and (self.stopped or self.drawn + self.count > self.samples):
            status = END
        if ahead and not status:
            self.ahead += 1
            self.most_ahead = max(self.most_ahead, self.ahead)
        return AGAIN if ahead and status else status

    def mpidata_trainer_had_ahead(self):
        self.ahead -= 1
        assert self.ahead >= 0
        return SUCCESS

    def mpidata_trainer_draw(self, fields, parameters, times, steps, simulations, timeout):
        if status := self._refuses(timeout):
            return status
        numbers = np.arange(self.drawn, self.drawn + self.count)
        self.drawn += self.count
        for field, address in zip(self.plan.fields, fields, strict=True):
            values = memory(address, (self.count, *field.shape), field.dtype)
            values[...] = numbers.reshape(-1, *[1] * len(field.shape))
        memory(parameters, (self.count, 2), "float64")[...] = np.stack([numbers, -numbers], axis=1)
        memory(times, (self.count,), "float64")[...] = 0.5 * numbers
        memory(steps, (self.count,), "int64")[...] = numbers % 5
        memory(simulations, (self.count,), "int64")[...] = numbers // 5
        return SUCCESS

    def mpidata_trainer_ahead(self, timeout):
        if self.draw_status:
            return self.draw_status
        if self.again:
            self.again -= 1
            return AGAIN
        return END if self.stopped or self.drawn + self.count > self.samples else SUCCESS

    def mpidata_trainer_stopped(self, stopped):
        stopped._obj.value = bool(self.stopped)
        return SUCCESS

    def mpidata_trainer_statistics(self, statistics):
        return SUCCESS

    def mpidata_trainer_steps(self, steps):
        steps._obj.value = self.known_steps
        return SUCCESS

    def mpidata_trainer_draw_page(self, size, address, page, timeout):
        if self.pages is None:
            return SUCCESS
        lay_out = [(field.shape, field.dtype, 64) for field in self.plan.fields]
        lay_out += [((2,), "float64", 8), ((), "float64", 8), ((), "int64", 8), ((), "int64", 8)]
        at, offsets = 0, []
        for shape, dtype, boundary in lay_out:
            offsets.append(at)
            at += int(np.prod((self.count, *shape), dtype=int)) * np.dtype(dtype).itemsize
            at = -(-at // boundary) * boundary
        assert size == at
        block = self.pages.pop() if self.pages else np.empty(size + 64, np.uint8)
        start = -(-block.ctypes.data // 64) * 64
        places = [start + offset for offset in offsets]
        status = self.mpidata_trainer_draw(places[:-4], *places[-4:], timeout)
        if status == SUCCESS:
            address._obj.value, page._obj.value = start, len(self.lent)
            self.lent.append(block)
        return status

    def mpidata_trainer_give_back(self, page):
        self.pages.append(self.lent[page])
        return SUCCESS

    def mpidata_trainer_validation(self, count, timeout):
        if self.again:
            self.again -= 1
            return AGAIN
        count._obj.value = self.n_validation
        return END if self.stopped else SUCCESS

    def mpidata_trainer_validation_copy(self, index, fields):
        for address, field in zip(fields, self.plan.fields, strict=True):
            memory(address, field.shape, field.dtype)[...] = index
        return SUCCESS

    def mpidata_trainer_validation_sample(self, index, numbers, parameters, times, step, simulation):
        memory(parameters, (2,), "float64")[...] = [index, -index]
        times._obj.value, step._obj.value, simulation._obj.value = 0.5 * index, index % 5, 3
        return SUCCESS

    def mpidata_trainer_report(self, name, value):
        self.reports.append((name.decode(), value))
        return SUCCESS

    def mpidata_trainer_losses(self, address, count, last):
        if self.losses_status and not last:
            return self.losses_status
        self.losses.append(memory(address, (LOSSES.itemsize * count,), "uint8").view(LOSSES).copy())
        return SUCCESS

    def mpidata_trainer_stop(self, failed, reason):
        self.stopped.append((failed, reason.decode()))
        return SUCCESS

    def mpidata_trainer_checkpoint(self):
        self.calls.append("checkpoint")
        return SUCCESS

    def mpidata_trainer_published(self, contents, size, edition):
        size._obj.value = 0
        return SUCCESS

    def mpidata_trainer_close(self, timeout):
        self.calls.append("close")
        return SUCCESS

    # solver

    def mpidata_beat(self):
        pass

    def mpidata_beat_at(self, what):
        self.at = what.decode()

    def mpidata_next(self, identity):
        self.calls.append("next")
        if not self.simulations:
            return END
        self.simulations -= 1
        identity._obj.value = 7 + self.simulations
        return SUCCESS

    def mpidata_param(self, name, value):
        value._obj.value = {b"alpha": 0.25, b"beta": 4.0}.get(name, 0.0)
        return SUCCESS

    def mpidata_put(self, field, address, dtype, ndim, shape):
        return self.mpidata_put_block(field, address, dtype, ndim, shape, None)

    def mpidata_put_block(self, field, address, dtype, ndim, shape, start):
        names = {of.number: name for name, of in DTYPES.items()}
        values = memory(address, tuple(shape), array_dtype(names[dtype])).copy()
        assert values.ndim == ndim
        self.puts.append((field.decode(), values, None if start is None else tuple(start)))
        return MISUSE if field == b"unknown" else SUCCESS

    mpidata_iput = mpidata_put_block

    def mpidata_wait_for(self, address):
        self.calls.append("wait_for")
        return SUCCESS

    def mpidata_wait(self):
        self.calls.append("wait")
        return SUCCESS

    def mpidata_step(self, time):
        if self.end_at_step == len(self.steps):
            return END
        self.steps.append(time)
        return SUCCESS

    def mpidata_fail(self, reason):
        self.calls.append(("fail", reason.decode()))
        return SUCCESS

    def mpidata_fail_try(self, reason):
        self.calls.append(("fail_try", reason.decode()))
        return SUCCESS

    def mpidata_finalize(self):
        self.calls.append("finalize")
        return SUCCESS


def make_trainer(library):
    """Make this process a trainer, as if it had joined a job."""
    job._trainer = Trainer(library.plan, library, None)
    return job._trainer


def numbers(batch):
    """Return the numbers of the samples of a batch."""
    return batch["temperature"][:, 0, 0].tolist()
