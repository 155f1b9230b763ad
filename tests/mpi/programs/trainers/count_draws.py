"""Trainer that meets the others in each batch, as DistributedDataParallel does. Arguments: BATCH SECONDS (of a batch).

Prints how many batches it drew, how often a batch had one sample, how many samples came, and how often at most.
"""

import sys
import time
from collections import Counter

from numpy_stream import stream

from mpidata.native.waiting import wait
from mpidata.trainer.join import join

batch_size, seconds = int(sys.argv[1]), float(sys.argv[2])
batches, alike, drawn = 0, 0, Counter()
for batch in stream(batch_size):
    batches += 1
    samples = list(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True))
    alike = max(alike, *Counter(samples).values())
    drawn.update(samples)
    time.sleep(seconds)
    if join().communicator is not None:
        wait(join().communicator.Ibarrier())
print("batches", batches, "alike", alike, "distinct", len(drawn), "most", max(drawn.values()))
