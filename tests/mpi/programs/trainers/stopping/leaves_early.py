"""Trainer: leaves its loop in the sixth batch. Arguments: `break` or `raise`, RANK (or `all`), `plain` or `ddp`."""

import os
import sys

import torch

import mpidata

action, rank, how = sys.argv[1:]
acts = rank in ("all", os.environ["RANK"])
if how == "ddp":
    mpidata.init_process_group()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(24, 1))
stream = mpidata.MPIStreamDataset(batch_size=4)
for number, batch in enumerate(stream):
    if number == 5 and acts:
        if action == "break":
            break
        raise ValueError("loss is nan")
    if how == "ddp":
        model(batch["u"].reshape(4, 24)).sum().backward()
if how == "ddp":
    torch.distributed.destroy_process_group()
print("after the loop, stopped:", stream.stopped)
