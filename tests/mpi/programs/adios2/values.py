"""Writes [simulation, step, time, energy] of each sample to values.json."""

import json

import mpidata

found = []
for batch in mpidata.MPIStreamDataset(batch_size=1):
    columns = batch["simulation"], batch["step"], batch["time"], batch["energy"]
    found += list(zip(*(column.tolist() for column in columns), strict=True))
with open("values.json", "w") as file:
    json.dump(sorted(found), file)
