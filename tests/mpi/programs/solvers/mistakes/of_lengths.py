"""Puts fields with lengths in a wrong way in step 2. Argument: the mistake."""

import sys

import numpy as np

import mpidata

mistake = sys.argv[1]
rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    for step in range(4):
        nodes, edges, wrong = 3 + rank, np.array([[0], [6]]), step == 2
        if wrong and mistake == "unlike":
            nodes += rank
        if wrong and mistake == "longer":
            nodes += 3
        if wrong and mistake == "beyond":
            edges += rank
        if wrong and mistake == "block":
            simulation.put_block("xy", np.zeros((2, 2)), (0, 0))
        if wrong and mistake == "shape":
            simulation.put(xy=np.zeros((2, 3)))
        simulation.put(xy=np.zeros((nodes, 2)))
        if not (wrong and mistake == "not-put"):
            simulation.put(u=np.zeros(3 + rank + 3 * (wrong and mistake == "longer")))
        simulation.put(ends=edges)
        simulation.step(0.1 * step)
