"""Slow trainer: checks the samples of solvers/python/large_samples.py; prints its peak memory."""

import time

from numpy_stream import stream
from peak_memory import print_peak

batches = stream(4)
seen = set()
print_peak("before")
for number, batch in enumerate(batches):
    time.sleep(0.05 if number > 5 else 0.5)
    for i in range(4):
        value = 40 * int(batch["simulation"][i]) + int(batch["step"][i])
        assert (batch["u"][i] == value).all()
        seen.add(value)
print_peak("after")
print("distinct", len(seen))
