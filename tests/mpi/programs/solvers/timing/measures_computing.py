"""Solver: measures its own computing time; its first step is longer than the others."""

import time

import numpy as np

import mpidata

computed = 0.0
for simulation in mpidata.solver.simulations():
    for step in range(20):
        before = time.monotonic()
        time.sleep(0.1 if step == 0 else 0.004)
        computed += time.monotonic() - before
        simulation.put(u=np.zeros((128, 128), np.float32))
        simulation.step(step)
    print("computed", computed, flush=True)
