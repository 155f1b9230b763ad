"""A model of DTensors on a 2 x 2 mesh, and a whole model trained on the batches of all replicas, stay equal.

Argument, in JSON: `checkpoint`, `kill`: as in stream.py, without the signal.
"""

import copy
import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import mpidata

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
mpidata.init_process_group()
place = mpidata.replica()
mesh = init_device_mesh("cpu", (place.count, place.size), mesh_dim_names=("dp", "tp"))
assert (mesh["dp"].get_local_rank(), mesh["tp"].get_local_rank()) == (place.number, place.rank)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 4))

    def forward(self, inputs):
        return 1.0 * self.layers(inputs)


torch.manual_seed(0)
whole = Net()
model = copy.deepcopy(whole)
parallelize_module(model, mesh["tp"], {"layers.0": ColwiseParallel(), "layers.2": RowwiseParallel()})
fully_shard(model, mesh=mesh["dp"])
assert all(isinstance(weight, DTensor) for weight in model.parameters())
optimizer, other = (torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9) for net in (model, whole))
stream = mpidata.MPIStreamDataset(batch_size=4)
if stream.resumed:  # must come from the checkpoint
    with torch.no_grad():
        for weight in [*model.parameters(), *whole.parameters()]:
            weight.fill_(7.0)
stream.register(model=model, optimizer=optimizer, whole=whole, other=other)
book = (Path(os.environ["MPIDATA_RUN"]) / f"book-{dist.get_rank()}.jsonl").open("a")
checkpoints = Path(os.environ["MPIDATA_RUN"]) / "checkpoints"
print(json.dumps({"resumed": stream.resumed}), file=book, flush=True)


def train(net, by, inputs, wanted):
    by.zero_grad()
    (net(inputs) - wanted).square().mean().backward()
    by.step()


for number, batch in enumerate(stream, stream.resumed):
    inputs, wanted = batch["parameters"].float(), batch["u"][:, 0, :4]
    train(model, optimizer, inputs, wanted)
    of_all = [torch.zeros(4, 5) for _ in range(dist.get_world_size())]
    dist.all_gather(of_all, torch.cat([inputs, wanted], 1))
    for replica in range(place.count):
        for rank in range(place.size):
            assert torch.equal(of_all[replica * place.size + rank], of_all[replica * place.size])
    each = torch.cat(of_all[:: place.size])
    train(whole, other, each[:, :1], each[:, 1:])
    for part, reference in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(part.full_tensor(), reference.detach())
    samples = torch.stack([batch["simulation"], batch["step"]], 1).tolist()
    print(json.dumps({"batch": number, "samples": samples}), file=book, flush=True)
    if number == options.get("checkpoint"):
        stream.checkpoint()
    if dist.get_rank() == options.get("kill") and number > options["checkpoint"] and not stream.resumed:
        if any(checkpoints.glob("[0-9]*[0-9]")):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
print(json.dumps({"over": stream.over, "stopped": stream.stopped, "drawn": number + 1}), file=book, flush=True)
