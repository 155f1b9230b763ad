"""Trainer: prints its peak memory in MB, after a stream that has filled the buffer."""

import time

from peak_memory import print_peak

import mpidata

for _ in mpidata.MPIStreamDataset(batch_size=1):
    time.sleep(0.01)  # the buffer is full
print_peak("peak")
