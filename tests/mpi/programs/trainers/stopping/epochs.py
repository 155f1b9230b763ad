"""Trainer: draws four epochs of four batches through torch's DataLoader, and prints the number of batches in each."""

import torch

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4, batches_per_epoch=4)
loader = torch.utils.data.DataLoader(stream, batch_size=None)
print("epochs", [sum(1 for _ in loader) for _ in range(4)])
