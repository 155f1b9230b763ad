"""Solver with two ranks: each simulation's first try fails after 1 to 8 steps. Arguments: COLUMNS (of u), STEPS."""

import os
import sys

import numpy as np

import mpidata

columns, steps = map(int, sys.argv[1:])
group = mpidata.solver.group()
u = np.empty((32, columns), np.float32)
for simulation in mpidata.solver.simulations():
    first = not os.path.exists(f"tried-{simulation.id}-{group.rank}")
    open(f"tried-{simulation.id}-{group.rank}", "w").close()
    for step in range(steps):
        if first and step == 1 + simulation.id % 8:
            # Mimics a function that raises; functions have one rank.
            simulation._rank.fail(simulation._rank.library.mpidata_fail_try, "raised the first time")
            break
        u[...] = 100 * simulation.id + step
        simulation.put_block("u", u, [32 * group.rank, 0])
        simulation.step(step)
