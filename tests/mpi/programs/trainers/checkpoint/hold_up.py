"""Trainer: measures how long a checkpoint of a full buffer blocks it, and how long a copy of 2 GiB takes."""

import ctypes
import json
import time

import numpy as np
import torch

import mpidata
from mpidata.checkpoint.snapshots import Checkpoints
from mpidata.native.structures import Statistics
from mpidata.trainer import join as job

held_up, take = [], Checkpoints.take


def timed(self):
    started = time.perf_counter()
    take(self)
    held_up.append(time.perf_counter() - started)


Checkpoints.take = timed
model = torch.nn.Linear(10, 10)
stream = mpidata.MPIStreamDataset(batch_size=4)
stream.register(model=model)
statistics, asked = Statistics(), False
for _ in stream:
    job.join().library.mpidata_trainer_statistics(ctypes.byref(statistics))
    if not asked and statistics.fill == statistics.capacity:
        asked = True
        stream.checkpoint()
    if held_up:
        break
stream.close()
source, target = np.ones(1 << 28, np.uint8), np.ones(1 << 28, np.uint8)
copies = []
for _ in range(9):
    started = time.perf_counter()
    np.copyto(target, source)
    copies.append(8 * (time.perf_counter() - started))
with open("held-up.json", "w") as file:
    json.dump({"held_up_s": held_up, "memcpy_s": sorted(copies)[4]}, file)
