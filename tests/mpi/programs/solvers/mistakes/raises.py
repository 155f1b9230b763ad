"""Solver with two ranks: rank 0 raises in the first try of simulation 1."""

import os

import mpidata

rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    simulation.put_block("u", [[0.0] * 6] * 2, (2 * rank, 0))
    simulation.step(0)
    if simulation.id == 1 and rank == 0 and not os.path.exists("tried"):
        open("tried", "w").close()
        raise ValueError("negative density")
