"""Solver of one simulation: checks that arguments, environment, filled file and library give the same parameters."""

import os
import sys
from pathlib import Path

import numpy as np
from mesh_names import MESHES

import mpidata

names = ("mesh", "level", "model", "n", "alpha")
for simulation in mpidata.solver.simulations():
    got = simulation.parameters
    mesh, level, model, n, alpha = (got[name] for name in names)
    assert mesh in MESHES and model == "k-epsilon" and level in (1.0, 2.0, 4.0), got
    told = [mesh, str(int(level)), model, "3", str(alpha)]
    assert sys.argv[1:6] == told, (sys.argv, told)
    assert [os.environ["MPIDATA_PARAM_" + name.upper()] for name in names] == told
    assert Path("input.dat").read_text().split("|") == [*told, f"{int(level):03d}"]
    assert sys.argv[6:] == [f"--level={int(level):03d}", f"{alpha:.3e}"]
    simulation.put(u=np.full((4, 6), MESHES.index(mesh) + 10 * level + 100 * alpha))
    simulation.step(0.0)
