"""Trainer of slow_jobs.py. Arguments: seconds per batch, one for each trainer."""

import os
import sys
import time

from numpy_stream import stream

batches = stream(4)
sleeps = [float(argument) for argument in sys.argv[1:]]
seconds = sleeps[int(os.environ["RANK"]) % len(sleeps)]
for _ in batches:
    time.sleep(seconds)
