"""Trainer: draws nothing before solvers/python/waits_for_one.py has waited; prints the number of correct samples."""

import pathlib
import time

from numpy_stream import stream

samples = stream()
while not pathlib.Path("one").exists():
    time.sleep(0.01)
time.sleep(1)
print(sum(bool((sample["u"] == sample["step"]).all()) for sample in samples))
