"""Trainer: inspects the first batch, then draws the rest."""

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
print("first", next(iter(stream))["u"].shape)
print("rest", sum(1 for _ in stream))
