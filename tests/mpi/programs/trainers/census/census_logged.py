"""Trainer of the resume campaign: checks every element of every sample of sized.c, and records each batch (drawn.py).

Arguments: BATCH (0: single samples), ENDS, SAMPLES (of the whole job), SECONDS. The job starts each of the ENDS+1
parts of its samples only once the file `ends` has another byte, and takes at least SECONDS for each part.
"""

import os
import sys
import time
from pathlib import Path

import torch
from batch_count import Batches
from drawn import begin, used

import mpidata
from mpidata.run.plan import Plan


def name(sample: dict[str, torch.Tensor]) -> str:
    simulation, step = int(sample["simulation"]), int(sample["step"])
    assert torch.equal(sample["u"], PATTERN + (4096 * simulation + 64 * step)), (simulation, step)
    assert int(sample["mark"]) == 64 * simulation + step and float(sample["time"]) == 0.5 * step
    return f"{simulation}/{step}"


batch_size, ends, samples = map(int, sys.argv[1:4])
part = samples / (ends + 1)
torch.set_num_threads(1)
stream = mpidata.MPIStreamDataset(batch_size=batch_size or None)
PATTERN = (torch.arange(stream.fields["u"].shape[0]) % 61).float()
counted = Batches()
stream.register(batches=counted)
assert counted.number == stream.resumed, (counted.number, stream.resumed)
plan = Plan.read(Path(os.environ["MPIDATA_RUN"], "private", "plan"))
log, marks = Path("drawn"), Path("ends")
before = {key for earlier in used(log, stream.resumed) for key in earlier.keys()} if stream.resumed else set()
drawn: set[str] = set()
with begin(log, plan.attempt, int(os.environ["RANK"]), stream.resumed).open("ab", buffering=0) as file:
    if plan.validation:
        for sample in stream.validation():
            assert int(name(sample).split("/")[0]) >= plan.simulations
    for batch in stream:
        count = batch_size or 1
        keys = [name({key: tensor[i] for key, tensor in batch.items()} if batch_size else batch) for i in range(count)]
        file.write((" ".join(keys) + "\n").encode())
        counted.number += 1
        drawn.update(keys)
        made = marks.stat().st_size
        time.sleep(float(sys.argv[4]) * plan.trainers * count / part if made < ends else 0.001)
        # All trainers draw the same number of batches.
        while made < ends and len(before) + plan.trainers * len(drawn) >= part * (made + 1):
            time.sleep(0.01)
            made = marks.stat().st_size
