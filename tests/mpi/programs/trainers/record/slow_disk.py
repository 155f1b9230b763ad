"""Trainer: writes its record to a slow disk, and prints the largest amount that waited."""

from numpy_stream import stream
from preloads import slow_record

from mpidata.record import writer
from mpidata.trainer.join import join

slow_record.slow_down(row_s=0.02)
writer._QUEUE_BYTES = 8 << 20
writer._TAKE_BYTES = 1 << 20
most = 0
drawn = 0
for _ in stream(1):
    drawn += 1
    figures = join().recorder._figures()
    most = max(most, figures.queued - figures.written)
print("drawn", drawn, "most", most)
