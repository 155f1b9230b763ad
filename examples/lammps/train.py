"""Trains a network that maps temperature, density and time to the radial distribution function."""

import torch

import mpidata

model = torch.nn.Sequential(torch.nn.Linear(3, 128), torch.nn.SiLU(), torch.nn.Linear(128, 100))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
stream = mpidata.MPIStreamDataset(batch_size=32)
for number, batch in enumerate(stream):
    inputs = torch.cat([batch["parameters"], batch["time"][:, None]], 1).float()
    loss = torch.nn.functional.mse_loss(model(inputs), batch["rdf"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 50 == 0:
        stream.report(loss=loss.item())
