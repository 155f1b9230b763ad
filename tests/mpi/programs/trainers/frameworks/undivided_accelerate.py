"""Trainer with accelerate and a stream in a DataLoader.

Argument: `whole` for batches, `samples` for single samples, `stateful` for batches in torchdata's class.
"""

import json
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

import mpidata

whole, stateful = sys.argv[1] != "samples", sys.argv[1] == "stateful"
stream = mpidata.MPIStreamDataset(batch_size=4) if whole else mpidata.MPIStreamDataset()
settings = DataLoaderConfiguration(dispatch_batches=False, use_stateful_dataloader=stateful)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4, dataloader_config=settings)
model = torch.nn.Linear(1, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(stream, batch_size=None if whole else 4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
used, steps = [], []
for number, batch in enumerate(loader, 1):
    used += zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True)
    with accelerator.accumulate(model):
        loss = torch.nn.functional.mse_loss(model(batch["parameters"].float()), batch["u"].flatten(1))
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    if accelerator.sync_gradients:
        steps.append(number)
with open(f"used-{accelerator.process_index}.json", "w") as file:
    json.dump({"used": used, "steps": steps}, file)
