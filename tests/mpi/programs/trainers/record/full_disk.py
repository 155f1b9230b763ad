"""Trainer: its record cannot grow after a few samples, and it saves its model long after the last sample."""

import resource
import time

from numpy_stream import stream

from mpidata.trainer.join import join

for number, _ in enumerate(stream(1), start=1):
    if number == 6:  # within the space that the file has now
        assert join().recorder.flush(10)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))
print("drawn", number)
join().close()
time.sleep(4)
print("the model is saved")
