"""Makes one mistake with maps or local numbers, named by its argument, on the last rank in step 1."""

import sys

import numpy as np

import mpidata

kind = sys.argv[1]
rank, ranks = mpidata.solver.group().Get_rank(), mpidata.solver.group().Get_size()
for simulation in mpidata.solver.simulations():
    for step in range(6):
        wrong = kind if rank == ranks - 1 and step == 1 else None
        rows = np.arange(rank, 8, ranks)
        u, v = rows.copy(), rows.copy()
        if wrong in ("twice", "both", "out", "missing", "negative"):
            u[-1] = {"twice": 1, "both": 0, "out": 8, "missing": 7, "negative": -1}[wrong]
        if wrong in ("far", "same"):
            v[-1] = {"far": 9, "same": 2}[wrong]
        if wrong == "missing":
            u = u[:-1]
        if wrong in ("last", "hole"):  # field 'w' implies that there are 8
            v = np.delete(v, -1 if wrong == "last" else 1)
        if wrong == "no-index":
            simulation.put_indices("u", np.zeros((8, 2)), rows)
        if wrong == "mixed":
            for row in rows:
                simulation.put_block("u", np.zeros((1, 2)), (int(row), 0))
        else:
            simulation.put_at("u", np.zeros((len(u) + (wrong == "shape"), 2)), u)
        if wrong == "mixed-parts":
            simulation.put(v=np.zeros(4))
        else:
            simulation.put_at("v", np.zeros(len(v)), [1.5] * 4 if wrong == "floats" else v)
        if kind in ("last", "hole"):
            simulation.put(w=np.zeros(len(rows)))
        local = np.array([0, 4 if wrong == "local" else 3, -1 if wrong == "local-below" else 1])
        simulation.put_indices("ends", local, rows)
        simulation.put_indices("of_parts", local[:1], None if kind == "no-parts" else rows)
        simulation.step(step)
