"""Trainer of slow_jobs.py. Arguments: seconds for each batch, of one trainer after the other."""

import os
import sys
import time

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
sleeps = [float(argument) for argument in sys.argv[1:]]
seconds = sleeps[int(os.environ["RANK"]) % len(sleeps)]
for _ in stream:
    time.sleep(seconds)
