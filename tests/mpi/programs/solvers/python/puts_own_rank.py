"""Solver: in each of three steps, rank n puts its number n + 1 times."""

import numpy as np

import mpidata

rank = mpidata.solver.group().rank
for simulation in mpidata.solver.simulations():
    for step in range(3):
        simulation.put(t=np.full(rank + 1, float(rank)))
        simulation.step(step)
