"""Trainer: creates a file in the folder `there` for each sample that it receives."""

from pathlib import Path

from numpy_stream import stream

for sample in stream():
    Path("there", f"{int(sample['simulation'])}-{int(sample['step'])}").touch()
