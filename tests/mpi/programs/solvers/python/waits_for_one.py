"""Solver: lends 24 arrays, waits for the first alone, then for all, and prints how long the latter took."""

import pathlib
import time

import numpy as np

import mpidata

u = [np.full((512, 512), i, np.float32) for i in range(24)]
for simulation in mpidata.solver.simulations():
    for i, values in enumerate(u):
        simulation.iput("u", values)
        simulation.step(i)
    simulation.wait(u[0])
    simulation.wait(np.zeros(3))  # was never lent
    pathlib.Path("one").touch()
    since = time.monotonic()
    simulation.wait()
    print("all", time.monotonic() - since)
