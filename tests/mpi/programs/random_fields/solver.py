"""Puts random fields in parts and blocks, by put, put_block, iput, maps and local numbers, some from a device."""

import contextlib
import os
import random
import signal

from calls import calls, time_of
from contents import SPEC

import mpidata

CHANCE = random.Random(SPEC["seed"])
if "STANDIN" in os.environ:
    from on_device import Device

    DEVICE = Device(os.environ["STANDIN"])


def make(simulation, call, lent):
    name, values = call.name, call.values
    array = None
    if "STANDIN" in os.environ and call.how not in ("kill", "iput") and CHANCE.random() < 0.7:
        # Arrays put by a map or as local numbers are contiguous.
        array = values = DEVICE.array(values, CHANCE, call.how not in ("mapped", "indices"))
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
    if array is not None:
        array.spoil()


rank = mpidata.solver.group().Get_rank() if SPEC["ranks"] > 1 else 0  # a carried program has no MPI
for simulation in mpidata.solver.simulations():
    for step in range(SPEC["steps"]):
        lent = []
        for call in calls(simulation.id, step, rank):
            make(simulation, call, lent)
        simulation.step(time_of(simulation.id, step))
        simulation.wait()
        if "STANDIN" in os.environ:
            print(f"=> {DEVICE.functions.copies()} copies")
            DEVICE.functions.forget()
