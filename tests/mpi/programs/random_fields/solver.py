"""Puts random fields in parts and blocks, by put, put_block or iput."""

import numpy as np
from contents import SPEC, chance, given, lengths, once, parts, varying, whole

import mpidata
from mpidata.dtypes import array_dtype


def most(entry):
    """Rows that the length of an index may have."""
    return max(1, SPEC["lengths"][entry["index"]][1])


def put_rows(simulation, name, values, step):
    """Put this rank's rows of a field, in any order, by one or two maps; those of steps of even number are the same."""
    if not given(name, simulation.id, step):
        return
    axis, number = max(0, varying(name)), list(SPEC["fields"]).index(name)
    of = chance(SPEC["seed"], number, step % 2 and step, 5)
    mine = np.array_split(of.permutation(values.shape[axis]), SPEC["ranks"])[rank]
    entry = SPEC["fields"][name]
    values = (values + values.dtype.type(entry.get("base", 0))).view(array_dtype(entry["dtype"]))
    for rows in np.array_split(mine, 1 + number % 2):
        simulation.put_at(name, np.take(values, rows, axis), rows)


rank = mpidata.solver.group().Get_rank() if SPEC["ranks"] > 1 else 0  # a carried program has no MPI
for simulation in mpidata.solver.simulations():
    for step in range(SPEC["steps"]):
        lent = []
        for number, (name, entry) in enumerate(SPEC["fields"].items()):
            if once(name) and step:
                continue
            of, values = chance(simulation.id, step, number, 2, rank), whole(name, simulation.id, step)
            if name in SPEC["by_map"]:
                put_rows(simulation, name, values, step)
                continue
            ghosts = chance(SPEC["seed"], number, rank, 4).permutation(most(entry)) if name in SPEC["local"] else None
            for cut in parts(name, simulation.id, step, rank):
                part = np.array(values[cut] + values.dtype.type(entry.get("base", 0)), order="C")
                part = part.view(array_dtype(entry["dtype"]))
                start = [piece.start for piece in cut] + [0] * (values.ndim - len(cut))
                if ghosts is not None:
                    local = np.argsort(ghosts)[values[cut]] + entry["base"]
                    simulation.put_indices(name, local.astype(values.dtype), ghosts)
                    continue
                by_iput = bool(of.integers(2)) and part.size > 0
                if by_iput:
                    lent.append(part)
                    simulation.iput(name, part, None if varying(name) >= 0 or not cut else start)
                elif varying(name) >= 0 or not cut:
                    simulation.put(**{name: part})
                else:
                    simulation.put_block(name, part, start)
        simulation.step(0.5 * step + sum(lengths(simulation.id, step).values()))
        simulation.wait()
