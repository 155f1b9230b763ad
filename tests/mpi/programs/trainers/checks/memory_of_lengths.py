"""Trainer: prints its peak memory in MB before the first sample and at the end of the stream."""

from numpy_stream import stream
from peak_memory import print_peak

from mpidata.trainer.join import join

join()
print_peak("=> before")
for _ in stream(32):
    pass
print_peak("=> after")
