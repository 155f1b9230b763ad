"""Compares u and xy of each sample, and notes (simulation, step, mesh's try) of all: seen-<trainer>.json.

Arguments: batch size (0: single samples), apart or batch.
"""

import gc
import json
import os
import sys

import torch
from mesh import NODES, STEPS, mesh

import mpidata

batch_size, constants = int(sys.argv[1]) or None, sys.argv[2]
stream = mpidata.MPIStreamDataset(batch_size=batch_size, constants=constants)
seen, kept, view = [], {}, None


def tried(simulation: int, xy: torch.Tensor) -> int:
    """Which try's mesh it is; fails where it is none."""
    return next(number for number in (0, 1) if xy.tolist() == mesh(simulation, number).tolist())


def note(simulation: int, step: int, xy: torch.Tensor) -> None:
    seen.append([simulation, step, tried(simulation, xy)])


validation = stream.validation()
held = [[int(sample["simulation"]), int(sample["step"]), tried(int(sample["simulation"]), sample["xy"])]
        for sample in validation]  # fmt: skip
for batch in stream:
    if batch_size is None:
        note(int(batch["simulation"]), int(batch["step"]), batch["xy"])
        continue
    assert ("xy" in batch) == (constants == "batch")
    for i, simulation in enumerate(batch["simulation"].tolist()):
        view = stream.constants(simulation)["xy"]
        note(simulation, int(batch["step"][i]), batch["xy"][i] if constants == "batch" else view)
        # The values are held once: all views are of the same memory, as long as there is one.
        if simulation in kept and constants == "apart" and "TRIED" not in os.environ:
            assert view.data_ptr() == kept[simulation].data_ptr()
        kept[simulation] = view
for simulation, view in kept.items():
    assert tried(simulation, view) >= 0 and view.numel() == NODES  # also when the stream is over
del view, batch, kept
gc.collect()
gone = []
for simulation in range(max(step[0] for step in seen) + 1):
    try:
        stream.constants(simulation)
    except mpidata.errors.StreamError as error:
        gone.append(str(error))
with open(f"seen-{os.environ['RANK']}.json", "w") as file:
    json.dump({"drawn": seen, "validation": held, "gone": gone, "steps": STEPS}, file)
