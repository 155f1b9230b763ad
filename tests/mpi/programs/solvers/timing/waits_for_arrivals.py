"""Solver: waits until notes_arrivals.py has received each sample, or each five. Argument: elements of a sample."""

import sys
import time
from pathlib import Path

import numpy as np

import mpidata

u, sent = np.zeros(int(sys.argv[1]), np.float32), 0


def wait_until_there() -> None:
    end = time.monotonic() + 30
    while sum(1 for _ in Path("there").iterdir()) < sent:
        assert time.monotonic() < end, f"of {sent} samples not all have come"
        time.sleep(0.001)


for simulation in mpidata.solver.simulations():
    for step in range(20):
        simulation.put(u=u)
        simulation.step(step)
        sent += 1
        if step < 10:  # one by one; then five in a row
            wait_until_there()
        elif step % 5 == 4:
            simulation.wait()
            wait_until_there()
