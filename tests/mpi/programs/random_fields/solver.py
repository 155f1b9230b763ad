"""Puts random fields in parts and blocks, by put, put_block or iput."""

import numpy as np
from contents import SPEC, chance, lengths, once, parts, varying, whole

import mpidata
from mpidata.dtypes import array_dtype

rank = mpidata.solver.group().Get_rank() if SPEC["ranks"] > 1 else 0  # a carried program has no MPI
for simulation in mpidata.solver.simulations():
    for step in range(SPEC["steps"]):
        lent = []
        for number, (name, entry) in enumerate(SPEC["fields"].items()):
            if once(name) and step:
                continue
            of, values = chance(simulation.id, step, number, 2, rank), whole(name, simulation.id, step)
            for cut in parts(name, simulation.id, step, rank):
                part = np.array(values[cut] + values.dtype.type(entry.get("base", 0)), order="C")
                part = part.view(array_dtype(entry["dtype"]))
                start = [piece.start for piece in cut] + [0] * (values.ndim - len(cut))
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
