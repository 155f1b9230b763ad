"""Trainer: prints its peak memory in MB after a stream that filled the buffer."""

import time

from numpy_stream import stream
from peak_memory import print_peak

for _ in stream(1):
    time.sleep(0.01)  # the buffer is full
print_peak("peak")
