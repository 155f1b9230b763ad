"""Solver in a copy of a case: checks the filled, linked and copied files; the first try of simulation 2 raises."""

import os
import stat

import numpy as np

import mpidata

RAISED = os.path.join(os.getcwd(), "../../../../../raised")  # in the job's folder
for simulation in mpidata.solver.simulations():
    alpha, again, number, text = open("system/input.dat").read().split(maxsplit=3)
    assert float(alpha) == float(f"{simulation.parameters['alpha']:.6e}") and len(alpha) == 12
    assert float(again) == simulation.parameters["alpha"] and int(number) == simulation.id
    assert text in ("{alpha}", "{alpha} 1", "{alpha} 2"), text
    if text != "{alpha}" and simulation.id == 2:
        assert (text[-1] == "2") == os.path.exists(RAISED)
    assert os.path.islink("mesh") and open("mesh/points").read() == "{{alpha}}"
    assert open("plain").read() == "{{alpha}}" and os.access("run.sh", os.X_OK) and os.readlink("to") == "plain"
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    open("written", "x").close()
    if simulation.id == 2 and not os.path.exists(RAISED):
        open(RAISED, "x").close()
        raise ValueError("as asked")
    simulation.put(u=np.zeros((4, 6)))
    simulation.step(0.0)
