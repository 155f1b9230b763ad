"""Solver of writes_into_batches.py, in groups of one or two ranks. Arguments: STEPS, rows of the field.

Sends nothing before the trainer has announced its batch size, because earlier samples would be copied.
"""

import sys
import time
from pathlib import Path

import numpy as np

import mpidata

steps, rows = map(int, sys.argv[1:])
group = mpidata.solver.group()  # joins the job, so that the trainer can join
while not Path("started").exists():
    time.sleep(0.01)
rank, size = group.Get_rank(), group.Get_size()
first = 3 * rows // 4 if rank else 0
last = rows if rank or size == 1 else 3 * rows // 4
for simulation in mpidata.solver.simulations():
    for step in range(steps):
        value = 1000.0 * simulation.id + step
        simulation.put_block("u", np.full((last - first, 16), value, np.float32), (first, 0))
        if rank == 0:
            simulation.put(v=np.float64(value))
        simulation.step(simulation.parameters["alpha"])
