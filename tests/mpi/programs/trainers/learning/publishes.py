"""Trainer: passes alpha as each sample's loss; before that, from batch FIRST on, publishes the number of batches."""

import os

import numpy as np
from numpy_stream import stream

import mpidata
from mpidata.trainer.join import join

count, seen = 0, {}
for batch in stream(2):
    count += 1
    if count >= int(os.environ.get("FIRST", 1)):
        for _ in range(int(os.environ.get("FIRST", 1)) if count == int(os.environ.get("FIRST", 1)) else 1):
            mpidata.publish({"batches": np.array(count), "weight": np.arange(1000.0) + count})
    alpha = batch["parameters"][:, 0]
    for simulation in batch["simulation"].tolist():
        seen[simulation] = seen.get(simulation, 0) + 1
    join().losses.take(batch, alpha)
print(f"=> {len(seen)} simulations, of {sum(seen.values())} samples", flush=True)
