"""Solver: its last rank exits during the first try of simulation 1, with the status or message in its argument."""

import os
import sys

import numpy as np

import mpidata

end = int(sys.argv[1]) if sys.argv[1].isdigit() else sys.argv[1]
for simulation in mpidata.solver.simulations():
    rank = mpidata.solver.group().Get_rank() if "mpi4py.MPI" in sys.modules else 0
    ranks = mpidata.solver.group().Get_size() if "mpi4py.MPI" in sys.modules else 1
    for step in range(10):
        if simulation.id == 1 and step == 4 and rank == ranks - 1 and not os.path.exists("left"):
            open("left", "w").close()
            sys.exit(end)
        simulation.put_block("u", np.full((4 // ranks, 6), float(step), np.float32), (rank * (4 // ranks), 0))
        simulation.step(0.1 * step)
