"""Trainer of the fault campaign: records each batch of a stream or of part files (drawn.py), chosen by `draw.json`.

With `together` the trainers synchronize in each step, like DistributedDataParallel, so a death fails the others.
"""

import json
import os
import time
from pathlib import Path

import torch
from batch_count import Batches
from drawn import begin

import mpidata
from mpidata.run.plan import Plan

one = json.loads(Path("draw.json").read_text())
rank, trainers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
if one["together"]:
    mpidata.init_process_group()
counted = Batches()
size = one["batch"] // trainers
if one["kind"] == "stream":
    data = mpidata.MPIStreamDataset(batch_size=size)
    data.register(batches=counted)
    resumed = data.resumed
else:
    data = mpidata.FileDataset("parts/*.npy", size, **({"reader": "loaders.killing_reader:read"} if one["bad"] else {}))
    mpidata.register(batches=counted)
    resumed = data.resumed[0] * len(data) + data.resumed[1]
assert counted.number == resumed, (counted.number, resumed)


def names(batch: dict[str, torch.Tensor], epoch: int) -> list[str]:
    if one["kind"] == "files":
        return [f"{epoch}/{int(row)}" for row in batch["data"][:, 0]]
    pattern = (torch.arange(batch["u"].shape[1]) % 61).float()
    for u, simulation, step in zip(batch["u"], batch["simulation"], batch["step"], strict=True):
        assert torch.equal(u, pattern + (4096 * int(simulation) + 64 * int(step))), (simulation, step)
    return [f"{int(s)}/{int(t)}" for s, t in zip(batch["simulation"], batch["step"], strict=True)]


attempt = Plan.read(Path(os.environ["MPIDATA_RUN"], "private", "plan")).attempt
with begin(Path("drawn"), attempt, rank, resumed).open("ab", buffering=0) as file:
    for epoch in range(1 if one["kind"] == "stream" else one["epochs"]):
        if one["kind"] == "files" and epoch < data.resumed[0]:
            continue
        for batch in data:
            file.write((" ".join(names(batch, epoch)) + "\n").encode())
            counted.number += 1
            if one["together"]:
                torch.distributed.all_reduce(torch.ones(1))
            time.sleep(one["step_s"])
if one["together"]:
    torch.distributed.destroy_process_group()
time.sleep(one["after_s"])
