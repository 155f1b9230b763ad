"""Learn one step of the rod, and cancel the simulations that the model already knows."""

from collections import Counter

import torch

import mpidata

KNOWN = 1e-5  # a sample is known if its loss is lower
ENOUGH = 20  # known samples in a row after which a simulation is cancelled

stream = mpidata.MPIStreamDataset(batch_size=8)
model = torch.nn.Conv1d(1, 1, kernel_size=3, bias=False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
in_a_row: Counter[int] = Counter()
cancelled: list[int] = []

for batch in stream:
    before, after = batch["u"][:, :1], batch["u"][:, 1:, 1:-1]
    losses = (model(before) - after).square().mean(dim=(1, 2))
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    for simulation, loss in zip(batch["simulation"].tolist(), losses.tolist(), strict=True):
        in_a_row[simulation] = in_a_row[simulation] + 1 if loss < KNOWN else 0
    cancelled += stream.cancel([simulation for simulation, known in in_a_row.items() if known >= ENOUGH])
    stream.report(loss=losses.mean().item(), cancelled=len(cancelled))

print(f"cancelled {len(cancelled)} simulations: {cancelled}")
