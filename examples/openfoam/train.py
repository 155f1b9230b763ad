"""Trains a network that maps the parameters and the time to the temperature of the plate."""

import torch

import mpidata

model = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.SiLU(), torch.nn.Linear(64, 400))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
stream = mpidata.MPIStreamDataset(batch_size=16)
ranges = torch.tensor([*stream.parameter_ranges.values(), (0.0, 1.0)])
for number, batch in enumerate(stream):
    inputs = torch.cat([batch["parameters"], batch["time"][:, None]], 1).float()
    inputs = (inputs - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
    target = (batch["temperature"].flatten(1) - 250) / 150
    each = ((model(inputs) - target) ** 2).mean(1)
    optimizer.zero_grad()
    each.mean().backward()
    optimizer.step()
    if number % 10 == 0:
        stream.report(error_K=150 * each.mean().sqrt().item())
