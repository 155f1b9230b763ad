"""Trainer with torchdata's StatefulDataLoader around `files` or a `stream`; with files, the rest is read again."""

import json
import os
import sys

import numpy as np
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import mpidata

SAMPLES, SIZE, AT, EPOCHS = 37, 4, 2, 2
given = sys.argv[1]
mpidata.init_process_group("gloo")
if os.environ["RANK"] == "0":
    np.save("rows.npy", np.arange(float(SAMPLES)))
torch.distributed.barrier()
batches, state = [], None
if given == "stream":
    loader = StatefulDataLoader(mpidata.MPIStreamDataset(batch_size=4), batch_size=None)
    mpidata.register(loader=loader)  # its state is the position in the stream
    for batch in loader:
        batches.append((1000 * batch["simulation"] + batch["step"]).tolist())
    notes = {"batches": batches, "state": loader.state_dict()["dataset_state"]}
else:
    loader = StatefulDataLoader(mpidata.FileDataset("rows.npy", SIZE), batch_size=None)
    for _ in range(EPOCHS):
        for batch in loader:
            batches.append(batch["data"].tolist())
            if len(batches) == AT:
                state = loader.state_dict()
    again = StatefulDataLoader(mpidata.FileDataset("rows.npy", SIZE), batch_size=None)
    again.load_state_dict(state)
    notes = {"batches": batches, "rest": [batch["data"].tolist() for _ in range(EPOCHS) for batch in again]}
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump(notes, file)
