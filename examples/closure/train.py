"""Learn the missing flux of a coarse grid, and publish the weights for the solvers every few batches."""

import torch
from net import net as model
from torch import nn

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=16)
nn.init.zeros_(model[2].weight)  # so that it adds nothing at first
nn.init.zeros_(model[2].bias)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mpidata.register(model=model, optimizer=optimizer)
mpidata.publish(model.state_dict())  # solvers that ask before the first batch wait for weights

for number, batch in enumerate(stream):
    loss = nn.functional.mse_loss(model(batch["stencils"])[..., 0], batch["fluxes"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 5 == 0:
        version = mpidata.publish(model.state_dict())
        plain, closed = batch["errors"].mean(0).tolist()
        stream.report(loss=loss.item(), error=plain, error_with_closure=closed)
        if number % 50 == 0:
            print(
                f"version {version}: loss {loss.item():.2e}, error {plain:.4f}, with closure {closed:.4f}", flush=True
            )
