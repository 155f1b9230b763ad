"""A Python solver with its own loop; puts `rows` by maps if the job declares it. Also used as a carried program."""

import os
import time

import numpy as np
from loop.asking import ask
from loop.solving import OPTIONS, log_of, part, ragged, refresh, steps_of

import mpidata
from mpidata.solver import SimulationCancelled

group = None if os.environ.get("MPIDATA_CARRIER") else mpidata.solver.group()
rank, size = (0, 1) if group is None else (group.Get_rank(), group.Get_size())
log = log_of(group)
mine = np.array_split(np.arange(8)[::-1], size)[rank]
for simulation in mpidata.solver.simulations():
    step, how, steps = 0, "complete", steps_of(simulation.id, OPTIONS["steps"])
    log.note("begin", simulation.id)
    try:
        while step < steps:
            refresh(log, simulation.id, step)
            ask(simulation.id, step, rank)
            values, start = part(simulation.parameters["alpha"], step, rank, size)
            simulation.put_block("u", values, start)
            if OPTIONS["rows"]:
                simulation.put_at("rows", (64 * simulation.id + step + mine).astype(np.float32), mine)
            if OPTIONS.get("ragged"):
                simulation.put(p=ragged(simulation.id, step, rank))
            if group is not None:
                group.Barrier()
            simulation.step(float(step))
            step += 1
            time.sleep(OPTIONS["step_s"])
    except SimulationCancelled:
        how = "cancelled"
    log.note("end", simulation.id, step, how)
