"""Trainer with accelerate. Argument: whether accelerate prepares the `stream` or a `loader` around it."""

import sys

import torch
from accelerate import Accelerator
from save import save
from torch.utils.data import DataLoader

import mpidata

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(1, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
stream = mpidata.MPIStreamDataset(batch_size=7)
validation = accelerator.prepare(DataLoader(stream.validation(), batch_size=5))
given = DataLoader(stream, batch_size=None) if sys.argv[1] == "loader" else stream
model, optimizer, stream = accelerator.prepare(model, optimizer, given)
used = []
for batch in stream:
    used += zip(batch["simulation"], batch["step"], strict=True)
    loss = torch.nn.functional.mse_loss(model(batch["parameters"].float()), batch["u"].flatten(1))
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
validated = []
for batch in validation:
    simulations, steps = accelerator.gather_for_metrics((batch["simulation"], batch["step"]))
    validated += zip(simulations.tolist(), steps.tolist(), strict=True)
save(used, model, rank=accelerator.process_index, world=accelerator.num_processes, validated=validated)
