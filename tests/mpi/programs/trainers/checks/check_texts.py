"""Trainer: checks that text parameters arrive as numbers.

Argument: "torch" to check also the texts that the dataset lists for these numbers.
"""

import json
import sys

from mesh_names import MESHES

if "torch" in sys.argv:
    import mpidata

    batches = mpidata.MPIStreamDataset(batch_size=1)
    assert batches.parameter_texts == {"mesh": MESHES, "model": ("k-epsilon",)}
    assert batches.parameter_ranges["mesh"] == (0.0, 1.0)
else:
    import numpy_stream

    batches = numpy_stream.stream(1)
seen = []
for batch in batches:
    alpha, level, mesh, model, n = batch["parameters"][0].tolist()
    assert (batch["u"][0] == mesh + 10 * level + 100 * alpha).all() and (model, n) == (0, 3)
    seen.append((mesh, level, alpha))
print(json.dumps(sorted(seen)))
