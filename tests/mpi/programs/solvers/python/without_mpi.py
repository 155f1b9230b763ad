"""Solver without MPI, three steps. Argument: `raises` in simulation 2, `environment` to env.json, `transposed` u."""

import json
import os
import sys

import numpy as np

import mpidata

how = sys.argv[1]
if how == "environment":
    with open("env.json", "w") as file:
        json.dump(dict(os.environ), file)
for simulation in mpidata.solver.simulations():
    assert "mpi4py.MPI" not in sys.modules  # this solver has no MPI
    for step in range(3):
        if how == "raises" and simulation.id == 2 and step == 2 and not os.path.exists("raised"):
            open("raised", "w").close()
            raise ValueError("as asked")
        simulation.put(u=np.full((6, 4) if how == "transposed" else (4, 6), simulation.parameters["alpha"] + step))
        simulation.step(0.5 * step)
