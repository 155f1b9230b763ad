"""Solver: eight samples of zeros per simulation."""

import numpy as np

import mpidata

for simulation in mpidata.solver.simulations():
    for step in range(8):
        simulation.put(u=np.zeros((4, 6), np.float32))
        simulation.step(step)
