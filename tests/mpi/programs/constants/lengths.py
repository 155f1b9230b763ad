"""Checks what solvers/constants.c puts, and writes (simulation, step, try) of all steps to seen-<trainer>.json.

Argument: the number of steps in a sample.
"""

import json
import os
import sys
from pathlib import Path

import mpidata

window = int(sys.argv[1])
stream = mpidata.MPIStreamDataset(batch_size=None)
drawn, views = [], {}
for sample in stream:
    simulation, tried = divmod(int(sample["mark"]), 10)
    assert simulation == int(sample["simulation"])
    nodes, edges, steps = 4 + simulation + 3 * tried, 3 + tried, sample["step"].reshape(-1).tolist()
    assert sample["xy"].tolist() == [[100 * int(sample["mark"]) + 2 * i + j for j in (0, 1)] for i in range(nodes)]
    assert sample["empty"].shape == (0, 3)
    assert sample["ends"].tolist() == [[nodes - 1] * (1 + tried) + [nodes - 2] * 2] * 2
    assert sample["back"].tolist() == list(range(nodes - 1, -1, -1))
    assert sample["picks"].tolist() == [edges * i + edge for i in range(window) for edge in (0, edges - 1)]
    assert sample["u"].tolist() == [10 * simulation + tried + 0.01 * step for step in steps for _ in range(nodes)]
    views[simulation] = (stream.constants(simulation), tried)
    drawn += [[simulation, step, tried] for step in steps[:1]]
for simulation, (view, tried) in views.items():
    assert int(view["mark"]) // 10 == simulation and len(view["xy"]) >= 4 + simulation + 3 * tried
Path(f"seen-{os.environ['RANK']}.json").write_text(json.dumps({"drawn": drawn}))
