"""Solver: fills the float32 field `u` with the number of the sample. Arguments: STEPS, ROWS, COLUMNS."""

import sys

import numpy as np

import mpidata

steps, *shape = map(int, sys.argv[1:])
for simulation in mpidata.solver.simulations():
    for step in range(steps):
        simulation.put(u=np.full(shape, steps * simulation.id + step, np.float32))
        simulation.step(step)
