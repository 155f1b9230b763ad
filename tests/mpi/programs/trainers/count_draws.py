"""Trainer that meets the others in each batch, as DistributedDataParallel does. Arguments: BATCH SECONDS (of a batch).

Prints how many batches it drew, how often a batch had one sample, how many samples came, and how often at most; and how
many of 100 samples in the last fifth of the batches are of the first half of the simulations.
"""

import sys
import time
from collections import Counter

from numpy_stream import stream

from mpidata.native.waiting import wait
from mpidata.trainer.join import join

batch_size, seconds = int(sys.argv[1]), float(sys.argv[2])
batches, alike, drawn, simulations = 0, 0, Counter(), []
for batch in stream(batch_size):
    batches += 1
    steps = batch["step"].reshape(len(batch["simulation"]), -1)[:, 0]  # of windows the first ones
    samples = list(zip(batch["simulation"].tolist(), steps.tolist(), strict=True))
    simulations += batch["simulation"].tolist()
    alike = max(alike, *Counter(samples).values())
    drawn.update(samples)
    time.sleep(seconds)
    if join().communicator is not None:
        wait(join().communicator.Ibarrier())
last, half = simulations[-len(simulations) // 5 :], max(simulations) / 2
old = 100 * sum(simulation < half for simulation in last) // len(last)
print("batches", batches, "alike", alike, "distinct", len(drawn), "most", max(drawn.values()), "old", old)
