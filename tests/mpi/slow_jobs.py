"""Jobs that are slow on purpose, each in one way. All of them sleep: they have more ranks than there are cores."""

from typing import Any

from jobs import JobFolder

TRAIN = """
import os, time
import mpidata
stream = mpidata.MPIStreamDataset(batch_size=4)
trainer = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
sleeps = {sleeps}
for batch in stream:
    time.sleep(sleeps[trainer % len(sleeps)])
"""
SOLVER = """
import os, time
import numpy as np
import mpidata
group = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1 - {trainers}
def simulate(alpha, simulation):
    time.sleep({start})
    u = np.zeros(({side}, {side}), np.float32)
    for step in range({steps} * ({long} if simulation == 3 else 1)):
        if step % {every} == {every} - 1:
            time.sleep({sleep} * ({factor} if group == 5 else 1))
        yield {{"u": u}}
"""
# `file` is found in a package that writes rows slowly, as a disk would.
SLOW_DISK = """
import time
from mpidata.record import file
append = file.RecordFile.append
def slow(self, rows, *more):
    time.sleep(0.05 * len(rows.step))
    return append(self, rows, *more)
file.RecordFile.append = slow
"""


def write_slow_job(
    folder: JobFolder,
    *,
    groups: int,
    sleep: float,
    train: tuple[float, ...],
    count: int,
    steps: int = 40,
    every: int = 1,
    factor: float = 1.0,
    start: float = 0.0,
    side: int = 128,
    long: int = 1,
    **keys: Any,
) -> None:
    """Write a job: sleeps every so many steps, `factor` times as long on group 5; `train` seconds for a batch of 4.

    Simulation 3 has `long` times as many steps.
    """
    solver = SOLVER.format(
        trainers=len(train),
        steps=steps,
        every=every,
        sleep=sleep,
        factor=factor,
        start=start,
        side=side,
        long=long,
    )
    folder.write(train=TRAIN.format(sleeps=train), solver=solver)
    job = {
        "trainers": {"ranks": len(train)},
        "solvers": {"groups": groups, "function": "solver:simulate", "in_flight": 1},
        "parameters": {"count": count, "space": {"alpha": [0.0, 1.0]}},
        "fields": {"u": {"dtype": "float32", "shape": [side, side]}},
        "buffer": {"policy": "fifo", "capacity": 200},
    }
    folder.job(**{key: {**value, **keys.pop(key, {})} for key, value in job.items()}, **keys)
