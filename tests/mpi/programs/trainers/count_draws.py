"""Trainer that synchronizes in each batch, like DistributedDataParallel. Arguments: BATCH SECONDS (of a batch).

Prints the number of batches, the most draws of one sample in a batch, the number of distinct samples, the most draws
of one sample, and what percentage of samples in the last fifth of the batches is of the first half of simulations.
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
    steps = batch["step"].reshape(len(batch["simulation"]), -1)[:, 0]  # the first steps of windows
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
