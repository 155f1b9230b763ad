"""Puts random fields in parts and blocks, by put, put_block, iput, maps, and in local numbers."""

import contextlib
import os
import signal

from calls import calls, time_of
from contents import SPEC

import mpidata


def make(simulation, call, lent):
    name, values = call.name, call.values
    if call.how == "kill":
        with contextlib.suppress(FileExistsError):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    elif call.how == "mapped":
        simulation.put_at(name, values, call.extra)
    elif call.how == "indices":
        simulation.put_indices(name, values, call.extra)
    elif call.how == "iput":
        lent.append(values)
        simulation.iput(name, values, call.extra)
    elif call.how == "put":
        simulation.put(**{name: values})
    else:
        simulation.put_block(name, values, call.extra)


rank = mpidata.solver.group().Get_rank() if SPEC["ranks"] > 1 else 0  # a carried program has no MPI
for simulation in mpidata.solver.simulations():
    for step in range(SPEC["steps"]):
        lent = []
        for call in calls(simulation.id, step, rank):
            make(simulation, call, lent)
        simulation.step(time_of(simulation.id, step))
        simulation.wait()
