"""Trainer: pauses for longer than every timeout of test_silence.py, with a full buffer and at the end of the job.

Argument: length of the last pause in seconds.
"""

import sys
import time

from numpy_stream import stream

from mpidata.trainer.join import join

for number, _ in enumerate(stream(1)):
    if number == 4:
        time.sleep(6)
join().close()
time.sleep(float(sys.argv[1]))
print("trained", number + 1)
