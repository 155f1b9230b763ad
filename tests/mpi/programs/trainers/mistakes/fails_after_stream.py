"""Trainer: fails after it has drawn everything and left the job."""

import sys
import time

from numpy_stream import stream

from mpidata.trainer.join import join

print("batches", sum(1 for _ in stream(4)))
join().close()
time.sleep(1)
sys.exit("no space for the model")
