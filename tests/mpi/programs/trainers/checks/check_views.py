"""Trainer: checks each element of fields whose element [i, j, k] is 100 i + 10 j + k + 1000 step."""

import numpy as np
from numpy_stream import stream

from mpidata.trainer.join import join

seen = 0
for sample in stream():
    for field in join().plan.fields:
        found = sample[field.name]
        indices = np.indices(found.shape)
        places = sum((10 ** (found.ndim - 1 - d) * indices[d] for d in range(found.ndim)), np.zeros(found.shape))
        np.testing.assert_array_equal(
            found, places + 1000 * sample["step"], err_msg=f"{field.name}, step {sample['step']}"
        )
        seen += 1
print("=> checked", seen, flush=True)
