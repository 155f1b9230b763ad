"""Trainer: prints its peak memory in MB, after a stream that has filled the buffer."""

import resource
import time

import mpidata

for _ in mpidata.MPIStreamDataset(batch_size=1):
    time.sleep(0.01)  # the buffer is full
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
