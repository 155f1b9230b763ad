"""Trainer with Ignite: evaluates on its share of the validation samples; the metrics include all trainers."""

import torch
from ignite.engine import Engine
from ignite.metrics import MeanSquaredError
from save import save
from torch.utils.data import DataLoader

import mpidata

mpidata.init_process_group("gloo")
stream = mpidata.MPIStreamDataset(batch_size=7)
network = torch.nn.Linear(1, 24)
model = torch.nn.parallel.DistributedDataParallel(network)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
used, validated = [], []


def step(engine, batch):
    used.extend(zip(batch["simulation"], batch["step"], strict=True))
    loss = torch.nn.functional.mse_loss(model(batch["parameters"].float()), batch["u"].flatten(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(engine, batch):
    validated.extend(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True))
    with torch.no_grad():
        return network(batch["parameters"].float()), batch["u"].flatten(1)


Engine(step).run(stream, max_epochs=1)
evaluator = Engine(evaluate)
MeanSquaredError().attach(evaluator, "mse")
own, every = stream.validation(), stream.validation(share=False)
found = evaluator.run(DataLoader(own, batch_size=5)).metrics["mse"]
shares, validated = validated, []
wanted = evaluator.run(DataLoader(every, batch_size=100)).metrics["mse"]  # each trainer has all samples: the same mean
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
save(used, network, rank=rank, world=world, validated=shares, errors=[found, wanted])
