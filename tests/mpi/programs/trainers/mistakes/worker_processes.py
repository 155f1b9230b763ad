"""Trainer: passes its stream to worker processes."""

import torch

import mpidata

stream = mpidata.MPIStreamDataset()
for _ in torch.utils.data.DataLoader(stream, batch_size=4, num_workers=1):
    pass
