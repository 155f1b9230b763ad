"""Trainer: measures how long it waits for its batches."""

import time

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
waited = 0.0
batches = iter(stream)
while True:
    before = time.monotonic()
    batch = next(batches, None)
    waited += time.monotonic() - before
    if batch is None:
        break
    time.sleep(0.04)
print("waited", waited)
