"""Solver: puts fields of all dtypes, from arrays and, for bfloat16, from tensors."""

import torch
from dtype_values import FIELDS, STEPS, put

import mpidata

for simulation in mpidata.solver.simulations():
    for step in range(STEPS):
        for name in FIELDS:
            values = put(name, step)
            if name == "bfloat16":
                values = torch.from_numpy(values).view(torch.bfloat16)
            if step % 2:
                simulation.iput(name, values)
            else:
                simulation.put(**{name: values})
        simulation.step(step)
        simulation.wait()
