"""Solver: makes a mistake in step 2, and catches the exception.

Arguments: the name of the value put then, the name of the time, and the exception to catch.
"""

import builtins
import sys

import numpy as np

import mpidata

GOOD = np.ones((4, 6), np.float32)
PUT = {
    "good": GOOD,
    "bool": np.ones((4, 6), bool),
    "ragged": [[1], [2, 3]],
    "masked": np.ma.masked_equal(np.eye(4, 6, dtype=int), 0),
    "huge": 1 << 2000,
    "shape": np.ones((4, 5), np.float32),
}
put, time, caught = sys.argv[1:]
for simulation in mpidata.solver.simulations():
    try:
        for step in range(5):
            odd = step == 2
            simulation.put(u=PUT[put] if odd else GOOD)
            simulation.step(float("nan") if odd and time == "nan" and simulation.id == 0 else step)
    except getattr(builtins, caught) as error:
        print("caught", error, flush=True)
