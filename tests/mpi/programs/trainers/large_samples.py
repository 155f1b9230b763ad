"""Trainer, a slow one: checks the samples of solvers/python/large_samples.py; prints the peak of its memory."""

import time

import torch
from peak_memory import print_peak

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
seen = set()
print_peak("before")
for number, batch in enumerate(stream):
    time.sleep(0.05 if number > 5 else 0.5)
    for i in range(4):
        value = 40 * int(batch["simulation"][i]) + int(batch["step"][i])
        assert torch.all(batch["u"][i] == value)
        seen.add(value)
print_peak("after")
print("distinct", len(seen))
