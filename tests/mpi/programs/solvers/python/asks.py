"""Asks the model in each step, with 0 or more rows, and checks the answers: asks.py [ROWS [KILLS COUNT [published]]].

A simulation has at least 20 steps, and runs until the file KILLS has COUNT letters. published: the factor comes from
trainers/publishes.py.
"""

import os
import sys

import numpy as np

import mpidata

FACTOR = np.array([1.0, 2.0, 3.0], np.float32)
most = int(sys.argv[1]) if len(sys.argv) > 1 else 4
kills, count = (sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 3 else (os.devnull, 0)
published = sys.argv[4:] == ["published"]

group = mpidata.solver.group()
for simulation in mpidata.solver.simulations():
    draws = np.random.default_rng([simulation.id, group.Get_rank()])
    step, enough = 0, False
    while step < 20 or not enough:
        rows = int(draws.integers(0, most + 1))
        x, which = draws.random((rows, 3), np.float32), draws.random(rows) < 0.5
        y = np.full((rows, 3), np.nan, np.float32)
        wanted = {"y": y, "s": ((rows,), "float64"), "n": ((rows,), "int64")}
        answer = mpidata.solver.infer({"x": x, "n": which}, wanted)
        assert answer["y"] is y and (answer.version > 0 if published else answer.version == 0)
        factor = FACTOR * np.float32(answer.version) if published else FACTOR
        np.testing.assert_array_equal(y, x * factor + 1)
        np.testing.assert_allclose(answer["s"], np.where(which, x.sum(1), 0), rtol=1e-5)
        assert rows == 0 or answer["n"].min() == answer["n"].max() >= rows  # of one call
        enough = group.bcast(os.path.getsize(kills) >= count if group.Get_rank() == 0 else None)
        if group.Get_rank() == 0:
            simulation.put(u=np.full(3, step, np.float32))
        simulation.step(step)
        step += 1
