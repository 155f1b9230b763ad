"""Solver with two ranks: each puts half of the field, but rank 1 puts nothing in step 137."""

import numpy as np

import mpidata

rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    for step in range(200):
        if (rank, step) != (1, 137):
            simulation.put_block("u", np.zeros((2, 6), np.float32), (2 * rank, 0))
        simulation.step(step)
