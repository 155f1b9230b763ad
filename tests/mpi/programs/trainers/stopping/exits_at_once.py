"""Trainer: calls os._exit(0) after its loop, after `stream.close()` in the loop, or (`within`) in the middle of it."""

import os
import sys

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
for number, _ in enumerate(stream):
    if number == 2 and sys.argv[1] == "close":
        stream.close()
    if number == 2 and sys.argv[1] == "within":
        os._exit(0)
os._exit(0)
