"""Trainer: makes three passes of three batches each, with a long pause after each, and ends."""

import itertools
import time

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
passes = []
for _ in range(3):
    passes.append(sum(1 for _ in itertools.islice(stream, 3)))
    time.sleep(2.5)
print("batches", passes, flush=True)
