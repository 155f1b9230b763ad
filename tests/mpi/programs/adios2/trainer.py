"""Trainer: checks each element that writes.cpp writes, and lists the samples received in seen.json.

Arguments: the number of ranks of writes.cpp, and the time between two steps.
"""

import json
import sys
from pathlib import Path

import numpy as np

import mpidata

ROWS = 11
ranks, step_time = int(sys.argv[1]), float(sys.argv[2])
first_rows = [ROWS * rank * rank // ranks**2 for rank in range(ranks + 1)]
row = np.arange(ROWS)[:, None]
seen = []
stream = mpidata.MPIStreamDataset(batch_size=None)
for sample in stream:
    simulation, step = int(sample["simulation"]), int(sample["step"])
    base = 10000 * simulation + 1000 * step
    counts = np.diff(first_rows) + 1
    parts = [base + 100 * rank + np.arange(2 * n).reshape(n, 2) for rank, n in enumerate(counts)]
    expected = {
        "fields_u": base + 10 * row + np.arange(5),
        "inner": base + 10 * row + np.arange(5),
        "halves": base + 10 * row + np.arange(4),
        "pairs": base + row[:, 0] - 1j * row[:, 0],
        "part": np.concatenate(parts),
        "each": 100 * np.arange(ranks) + step,
        "energy": np.array(base),
        "mesh": 10000 * simulation + row[:, 0],
    }
    assert set(stream.fields) <= set(expected)
    for name in stream.fields:
        np.testing.assert_array_equal(sample[name].numpy(), expected[name], err_msg=f"{name}, {simulation}, {step}")
    assert float(sample["time"]) == step_time * step
    seen.append([simulation, step])
Path("seen.json").write_text(json.dumps(seen))
