"""Trainer: holds a shard of each weight (FSDP2); records the whole weights and moments after each batch.

Asks for a checkpoint at the batch in its argument, and ends once it is written; the next start ends with the job.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import mpidata

mpidata.init_process_group()
torch.set_num_threads(1)
mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
for part in (model[0], model[2], model):
    fully_shard(part, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
stream = mpidata.MPIStreamDataset(batch_size=4)
if stream.resumed:  # must come from the checkpoint
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(7.0)
stream.register(model=model, optimizer=optimizer, schedule=schedule)


def whole(tensors):
    return [tensor.full_tensor().flatten().tolist() for tensor in tensors if isinstance(tensor, DTensor)]


def note():
    moments = [value for of in optimizer.state.values() for value in of.values()]
    steps = [float(of["step"]) for of in optimizer.state.values()]
    return [whole(model.parameters()), whole(moments), steps, schedule.get_last_lr()]


notes = {stream.resumed: note()}
done = Path(os.environ["MPIDATA_RUN"]) / "checkpoints" / "000001"
for number, batch in enumerate(stream, stream.resumed + 1):
    optimizer.zero_grad()
    (model(batch["parameters"].float()) - batch["u"][:, 0, :3]).square().mean().backward()
    optimizer.step()
    schedule.step()
    notes[number] = note()
    if not stream.resumed and number == int(sys.argv[1]):
        stream.checkpoint()
    there = torch.tensor(float(done.exists() and not stream.resumed))
    torch.distributed.all_reduce(there)
    if there:
        break
name = "resumed" if stream.resumed else "first"
with open(f"{name}-{os.environ['RANK']}.json", "w") as file:
    json.dump([stream.resumed, notes], file)
