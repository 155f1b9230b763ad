"""Trainer: texts among the parameters come as numbers, and the stream says which text each number stands for."""

import json

from mesh_names import MESHES

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=1)
seen = []
for batch in stream:
    alpha, level, mesh, model, n = batch["parameters"][0].tolist()
    assert (batch["u"][0] == mesh + 10 * level + 100 * alpha).all() and (model, n) == (0, 3)
    seen.append((mesh, level, alpha))
print(json.dumps(sorted(seen)))
assert stream.parameter_texts == {"mesh": MESHES, "model": ("k-epsilon",)}
assert stream.parameter_ranges["mesh"] == (0.0, 1.0)
