"""Slow trainer, so that samples wait to be received: checks that fails_first_try.py's are correct and distinct."""

import time

from numpy_stream import stream

seen = set()
for batch in stream(2):
    time.sleep(0.004)
    for i in range(2):
        value = 100 * int(batch["simulation"][i]) + int(batch["step"][i])
        assert (batch["u"][i] == value).all() and value not in seen
        seen.add(value)
print("distinct", len(seen))
