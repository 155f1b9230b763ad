"""Solver: puts 4100 blocks in step 2, and continues regardless of errors."""

import contextlib

import numpy as np

import mpidata

for simulation in mpidata.solver.simulations():
    for step in range(4):
        width = 1 if step == 2 else 5
        for start in range(0, 4100, width):
            with contextlib.suppress(Exception):
                simulation.put_block("u", np.zeros(width, np.float32), (start,))
        with contextlib.suppress(Exception):
            simulation.step(step)
