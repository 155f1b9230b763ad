"""Training script of the online demo: maps feed, kill and the time to both species on 256 x 256 points."""

import torch
from torch import nn

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
model = nn.Sequential(
    nn.Linear(3, 128),
    nn.SiLU(),
    nn.Linear(128, 8 * 32 * 32),
    nn.Unflatten(1, (8, 32, 32)),
    nn.Upsample(scale_factor=8, mode="bilinear"),
    nn.Conv2d(8, 2, kernel_size=3, padding=1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scale = torch.tensor([0.06, 0.065, 400.0])

for number, batch in enumerate(stream):
    predicted = model(torch.cat([batch["parameters"], batch["time"][:, None]], dim=1).float() / scale)
    loss = nn.functional.mse_loss(predicted, batch["species"].permute(0, 3, 1, 2).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    stream.report(training_loss=loss.item())
    if number % 10 == 0:
        print(f"batch {number}: loss {loss.item():.5f}", flush=True)
