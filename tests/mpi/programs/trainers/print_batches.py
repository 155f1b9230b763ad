"""Trainer: prints each batch."""

from numpy_stream import stream

for number, _ in enumerate(stream(4), start=1):
    print("batch", number, flush=True)
