"""Solver: abandons simulation 1 until the file `mended` exists, and puts nothing in 3 until `whole` exists."""

import os

import mpidata


def simulate(alpha, simulation):
    if simulation == 1 and not os.path.exists("mended"):
        raise mpidata.GiveUp("diverged")
    if simulation == 3 and not os.path.exists("whole"):
        yield {}
    yield {"u": [[0.0] * 6] * 4}
