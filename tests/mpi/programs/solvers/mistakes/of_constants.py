"""Puts constants in a wrong way. Argument: the mistake."""

import sys

import numpy as np

import mpidata

mistake = sys.argv[1]
rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    if mistake == "twice" and rank == 0:
        simulation.put(weights=np.zeros(4))
    if mistake in ("map-hole", "map-twice"):
        rows = [0, 1] if rank == 0 else [2] if mistake == "map-hole" else [3, 1]
        simulation.put_at("weights", np.zeros(len(rows)), rows)
    elif rank == 0 and mistake != "hole":
        simulation.put(weights=np.zeros(4))
    elif mistake == "hole":
        simulation.put_block("weights", np.zeros(1), (rank,))
    if not (mistake == "not-put"):
        simulation.put(xy=np.zeros((3 + rank, 2)))
    if mistake == "overlap" and rank == 1:
        simulation.put_block("weights", np.zeros(2), (1,))
    simulation.put(ends=np.array([[0], [7 if mistake == "beyond" else 6]]))
    for step in range(4):
        if step == 2 and mistake == "late":
            simulation.put(xy=np.zeros((3 + rank, 2)))
        simulation.put(u=np.zeros(3 + rank + (step == 2 and mistake == "longer")))
        simulation.step(0.1 * step)
