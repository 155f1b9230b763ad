"""Trainer with Ignite. Argument: a `stream`, a `loader` or `files`; with the latter, the rest is trained again."""

import json
import os
import sys

import ignite.distributed as idist
import numpy as np
import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint
from ignite.metrics import Average

import mpidata

SAMPLES, SIZE, AT, EPOCHS = 37, 4, 2, 2


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.tensor(float(index))


def make(given):
    if given == "stream":
        return mpidata.MPIStreamDataset(batch_size=4)
    if given == "loader":
        return mpidata.DataLoader(Numbers(), SIZE, shuffle=True, share=True)
    return mpidata.FileDataset("rows.npy", SIZE)


def numbers(batch):
    if isinstance(batch, torch.Tensor):
        return batch
    return batch["data"] if "data" in batch else 1000 * batch["simulation"] + batch["step"]


given = sys.argv[1]
if os.environ["RANK"] == "0":
    np.save("rows.npy", np.arange(float(SAMPLES)))
mpidata.init_process_group("gloo")
torch.distributed.barrier()


def trained(data, state=None, saved=None):
    """Train; return the numbers of each batch, and Ignite's mean over all trainers' batches."""
    batches = []

    def step(engine, batch):
        batches.append(numbers(batch).tolist())
        return float(np.mean(batches[-1])), len(batches[-1])

    engine = Engine(step)
    Average(output_transform=lambda output: output[0]).attach(engine, "mean")
    objects = {"engine": engine} | ({"data": data} if given != "stream" else {})

    @engine.on(Events.ITERATION_COMPLETED(once=AT))
    def save():
        if saved is not None:
            saved.update({name: thing.state_dict() for name, thing in objects.items()})

    if state is not None:
        Checkpoint.load_objects(objects, state)
    engine.run(data, max_epochs=1 if given == "stream" else EPOCHS)
    return batches, engine.state.metrics["mean"]


saved = {}
batches, mean = trained(make(given), saved=saved)
notes = {"batches": batches, "mean": mean, "world": idist.get_world_size()}
if given != "stream":
    notes["rest"] = trained(make(given), state=saved)[0]
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump(notes, file)
