"""Trainer with accelerate and datasets on loaders: two epochs, and the rest of them from a restored state."""

import itertools
import json
import os
import sys

import accelerate
import numpy as np
import torch
from accelerate.utils import DataLoaderConfiguration

import mpidata

SAMPLES, VALIDATION, SIZE, AT = 37, 21, 4, 2
own_loader = sys.argv[1] == "loader"


class Numbers(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return torch.tensor([float(index)])


def start():
    config = DataLoaderConfiguration(dispatch_batches=False, use_stateful_dataloader=not own_loader)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2, dataloader_config=config)
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    if own_loader:
        data = mpidata.DataLoader(Numbers(SAMPLES), SIZE, shuffle=True, share=True)
        accelerator.register_for_checkpointing(data)
    else:
        data = torch.utils.data.DataLoader(mpidata.FileDataset("rows.npy", SIZE), batch_size=None)
    return accelerator, *accelerator.prepare(model, optimizer, data)


def train(accelerator, model, optimizer, data, epochs, save_at=None):
    """Train on the rest of some epochs; return the batches, and after which of them a step was made."""
    batches, stepped = [], []
    for _ in range(epochs):
        for batch in data:
            x = batch if own_loader else batch["data"]
            batches.append(x.flatten().tolist())
            with accelerator.accumulate(model):
                accelerator.backward((model(x.reshape(-1, 1).float()) - 1).square().mean())
                optimizer.step()
                optimizer.zero_grad()
            stepped.append(accelerator.sync_gradients)
            if len(batches) == save_at:
                accelerator.save_state("state")
    return batches, stepped


if os.environ["RANK"] == "0":
    np.save("rows.npy", np.arange(float(SAMPLES)))
accelerate.PartialState(cpu=True).wait_for_everyone()
accelerator, *parts = start()
batches, stepped = train(accelerator, *parts, epochs=2, save_at=AT)
sums = [float(parameter.detach().sum()) for parameter in parts[0].parameters()]
validation = accelerator.prepare(mpidata.DataLoader(Numbers(VALIDATION), SIZE, share=True))
validated = [accelerator.gather_for_metrics(x).flatten().tolist() for x in validation]

again, *parts = start()
again.load_state("state")
rest, _ = train(again, *parts, epochs=2)
notes = {"batches": batches, "stepped": stepped, "validated": list(itertools.chain(*validated)), "rest": rest}
notes |= {"sums": [sums, [float(parameter.detach().sum()) for parameter in parts[0].parameters()]]}
with open(f"used-{accelerator.process_index}.json", "w") as file:
    json.dump(notes, file)
