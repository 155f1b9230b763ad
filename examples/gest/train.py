"""Learn the front from its parameters and the step, and report the loss of each sample for the generator."""

import torch

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=16)
model = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for batch in stream:
    inputs = torch.cat([batch["parameters"].float(), batch["step"].float()[:, None] / 8], dim=1)
    each = (model(inputs) - batch["u"]).square().mean(1)
    stream.losses(batch, each.detach())
    optimizer.zero_grad()
    each.mean().backward()
    optimizer.step()
    stream.report(loss=each.mean().item())
