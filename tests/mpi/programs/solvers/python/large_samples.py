"""Solver: sends 40 samples of 4 MB per simulation, as fast as possible; prints its peak memory."""

import numpy as np
from peak_memory import print_peak

import mpidata

u = np.ones((1024, 1024), np.float32)
mpidata.solver.group()
print_peak("before")
for simulation in mpidata.solver.simulations():
    for step in range(40):
        u[...] = 40 * simulation.id + step
        simulation.put(u=u)
        simulation.step(step)
print_peak("after")
