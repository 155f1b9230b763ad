"""Trainer of a FileDataset: records the rows of each batch in a file per start, and registers a model.

Arguments: rows of a global batch, seconds to sleep after each batch, number of this start.
"""

import json
import os
import pathlib
import sys
import time

import torch

import mpidata

EPOCHS = 3
rank, trainers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
start = sys.argv[3]
steps = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(steps.weight)
mpidata.register(steps=steps)
data = mpidata.FileDataset("parts/*.npy", int(sys.argv[1]) // trainers)
first = data.resumed[0] * len(data) + data.resumed[1]
assert float(steps.weight) == first, (float(steps.weight), data.resumed)  # all parts of a checkpoint are of one batch
if rank == 0:
    pathlib.Path(f"resumed-{start}").write_text(json.dumps(data.resumed))
with open(f"seen-{start}-{rank}", "w", buffering=1) as seen:
    for epoch in range(data.resumed[0], EPOCHS):
        batches_before = data.resumed[1] if epoch == data.resumed[0] else 0
        for number, batch in enumerate(data, batches_before):
            seen.write(json.dumps([epoch, number, batch["data"][:, 0].tolist()]) + "\n")
            with torch.no_grad():
                steps.weight += 1
            mpidata.report(step=steps.weight)
            time.sleep(float(sys.argv[2]))
