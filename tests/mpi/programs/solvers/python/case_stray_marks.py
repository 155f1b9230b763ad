"""Solver in a copy of a case with the marks << and >>: stray marks stay in its file."""

import numpy as np

import mpidata

for simulation in mpidata.solver.simulations():
    text = open("system/input.dat").read()
    filled = f"{simulation.parameters['alpha']:.6e} x << 3; {simulation.id:04d} << {simulation.id}"
    assert text == f"cat << END > in.txt\n{filled}\n<<", text
    simulation.put(u=np.zeros((4, 6)))
    simulation.step(0.0)
