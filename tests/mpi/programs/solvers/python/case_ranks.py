"""Solver with two ranks that share a copy of a case. Arguments: a rank, and what it kills in the first try of
simulation 1: `itself`, or its `parent`."""

import os
import signal
import sys
import time

import numpy as np

import mpidata

dies, of = int(sys.argv[1]), sys.argv[2]
group = mpidata.solver.group()
for simulation in mpidata.solver.simulations():
    alpha, number, by_try, own, ranks = open("input.dat").read().split()
    assert float(alpha) == simulation.parameters["alpha"] and int(number) == simulation.id and int(ranks) == 2
    assert os.environ["MPIDATA_GROUP"] == own and "MPIDATA_PARAM_TRY" not in os.environ
    simulation.put_block("u", np.full((2, 6), simulation.id, "f4"), (2 * group.Get_rank(), 0))
    simulation.step(0.0)
    if simulation.id == 1 and by_try == "1" and group.Get_rank() == dies:
        os.kill(os.getppid() if of == "parent" else os.getpid(), signal.SIGKILL)
        time.sleep(30)  # until it dies with its parent
    simulation.put_block("u", np.full((2, 6), -1, "f4"), (2 * group.Get_rank(), 0))
    simulation.step(1.0)
