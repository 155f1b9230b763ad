"""Simulations that run until they are cancelled, and then write their number of steps to ended-SIMULATION-RANK.

`by_rows` runs on all ranks, with a barrier between steps; `whole` on the first one; `with_constants` puts `c` once.
"""

import time
from pathlib import Path

import numpy as np

from mpidata import Constants

PAUSE_S = 0.001


def _until_cancelled(simulation, rank, make):
    step = 0
    try:
        while True:
            yield make(step)
            step += 1
            time.sleep(PAUSE_S)
    except GeneratorExit:
        Path(f"ended-{simulation}-{rank}").write_text(str(step))
        raise


def by_rows(alpha, simulation, group):
    rank, rows = group.Get_rank(), 4 // group.Get_size()

    def make(step):
        group.Barrier()
        return {"u": (np.full((rows, 6), 1000 * simulation + step, np.float32), (rows * rank, 0))}

    yield from _until_cancelled(simulation, rank, make)


def whole(alpha, simulation):
    yield from _until_cancelled(
        simulation, 0, lambda step: {"u": np.full((4, 6), 1000 * simulation + step, np.float32)}
    )


def with_constants(alpha, simulation):
    yield Constants(c=np.full(5, simulation, np.float32))
    yield from whole(alpha, simulation)
