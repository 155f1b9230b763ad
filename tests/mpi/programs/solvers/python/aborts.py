"""Solver: simulation 1 calls MPI_Abort in its first try."""

import os

import numpy as np
from mpi4py import MPI

import mpidata

for simulation in mpidata.solver.simulations():
    for step in range(5):
        simulation.put(u=np.zeros((4, 6), np.float32))
        simulation.step(step)
        if simulation.id == 1 and not os.path.exists("tried"):
            open("tried", "w").close()
            print("simulation 1 diverged")
            MPI.COMM_WORLD.Abort(7)
