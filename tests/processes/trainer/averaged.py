"""Compare mpidata.LocalSGD over MPI with torch's DistributedDataParallel over gloo, and with the formulas of DiLoCo.

Arguments: a folder for the store.
"""

import copy
import sys
from types import SimpleNamespace

import torch
import torch.distributed as dist
from mpi4py import MPI
from torch import nn

from mpidata.errors import StreamError
from mpidata.trainer.elastic import data_parallel
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.local_sgd import local_sgd
from mpidata.trainer.local_sgd.meeting_points import How
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.shares.share import Share

RANK, RANKS = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()


class Model(nn.Module):
    """A model of several dtypes, with frozen, scalar, complex and unused parameters, and with buffers."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3))
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.turned = nn.Parameter(torch.randn(3, dtype=torch.complex64))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.never = nn.Parameter(torch.randn(2))

    def forward(self, x):
        return ((self.net(x) * self.turned).abs() * self.frozen * self.scale).square().mean()


class Trainer:
    """The parts of a trainer that LocalSGD uses."""

    def __init__(self, elastic):
        self.communicator = MPI.COMM_WORLD
        self.members = Members(MPI.COMM_WORLD.Dup(), lambda seconds: None) if elastic else None
        self.apart, self.samples, self.turns, self.leaves = None, 0, SimpleNamespace(samples=0), []
        self.share = Share()
        self.replica = Replica()
        self.checkpoints = SimpleNamespace(hold=lambda name, thing: None)


def make(elastic, every, outer=None):
    """Return a model, its optimizer, and LocalSGD with its trainer."""
    trainer = Trainer(elastic)
    local_sgd.in_job, local_sgd.job = lambda: True, SimpleNamespace(join=lambda: trainer)
    torch.manual_seed(RANK)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    return model, optimizer, local_sgd.LocalSGD(model, optimizer, every, outer), trainer


def step(model, optimizer, trainer, number, samples=6):
    generator = torch.Generator().manual_seed(1000 * number + RANK)
    x = torch.randn(samples, 5, generator=generator)
    trainer.samples += samples
    optimizer.zero_grad()
    model(x).backward()
    optimizer.step()


def check_alike(model):
    for name, value in model.state_dict().items():
        others = MPI.COMM_WORLD.allgather(value.clone())
        assert all(torch.equal(value, other) for other in others), (name, others)


def as_data_parallel(elastic):
    """After each step all have the weights that DistributedDataParallel gives."""
    model, optimizer, _, trainer = make(elastic, 1)
    theirs = nn.parallel.DistributedDataParallel(copy.deepcopy(model), find_unused_parameters=True)
    their_optimizer = torch.optim.SGD(theirs.parameters(), 0.05)
    for number in range(50):
        step(model, optimizer, trainer, number)
        step(theirs, their_optimizer, Trainer(False), number)
        check_alike(model)
    for ours, other in zip(model.parameters(), theirs.module.parameters(), strict=True):
        assert (ours - other).abs().max() < 1e-6, (ours, other)


def by_its_formulas(elastic):
    """DiLoCo's formulas hold for trainers with the same number of steps and different numbers of samples."""
    momentum = {"lr": 0.7, "momentum": 0.9, "nesterov": True}
    model, optimizer, _, trainer = make(elastic, 4, lambda of: torch.optim.SGD(of, **momentum))
    alone = copy.deepcopy(model)
    alone_optimizer = torch.optim.SGD(alone.parameters(), 0.05)
    anchor = [p.detach().clone() for p in alone.parameters() if p.requires_grad]
    velocity = [torch.zeros_like(a) for a in anchor]
    weights = [6 + 2 * rank for rank in range(RANKS)]
    for number in range(12):
        MPI.COMM_WORLD.Barrier()  # otherwise, a trainer that is ahead makes the others average before their fourth step
        step(model, optimizer, trainer, number, weights[RANK])
        step(alone, alone_optimizer, Trainer(False), number, weights[RANK])
        if number % 4 < 3:
            continue
        trained = [p for p in alone.parameters() if p.requires_grad]
        for i, p in enumerate(trained):
            differences = MPI.COMM_WORLD.allgather(anchor[i] - p.detach())
            mean = sum(w * d for w, d in zip(weights, differences, strict=True)) / sum(weights)
            velocity[i] = 0.9 * velocity[i] + mean
            anchor[i] = anchor[i] - 0.7 * (mean + 0.9 * velocity[i])
            p.data.copy_(anchor[i])
        for ours, theirs in zip((p for p in model.parameters() if p.requires_grad), trained, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        check_alike(model)
        alone.load_state_dict(model.state_dict())
        anchor = [p.detach().clone() for p in trained]


def uneven(elastic):
    """Trainers make different numbers of steps, and none waits for more."""
    model, optimizer, local, trainer = make(elastic, 3, lambda of: torch.optim.SGD(of, 1.0, 0.5))
    for number in range(5 + 4 * RANK):
        step(model, optimizer, trainer, number)
    local.average()
    check_alike(model)
    before = copy.deepcopy(model.state_dict())
    trainer.samples += 6
    local.average()  # samples without a step: an outer optimizer must not move either
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    if RANK == 0:
        for number in range(5):
            step(model, optimizer, trainer, number)
    elif RANK == 1:
        assert local.come(How.JOINING) is False  # the others are at the end
    local.come(How.LEAVING)
    check_alike(model)


def refusals():
    trainer = Trainer(False)
    local_sgd.in_job, local_sgd.job = lambda: True, SimpleNamespace(join=lambda: trainer)
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    new = local_sgd.LocalSGD
    assert "every=0 is not a positive" in refused(lambda: new(model, optimizer, 0))
    assert "outer must be a function" in refused(lambda: new(model, optimizer, outer=optimizer))
    assert "int is not a torch optimizer" in refused(lambda: new(model, 3))
    assert "no parameter of the model requires" in refused(
        lambda: new(nn.Linear(2, 2).requires_grad_(False), optimizer)
    )
    assert "is a DistributedDataParallel" in refused(lambda: new(nn.parallel.DistributedDataParallel(model), optimizer))
    assert "the module differs between trainers" in refused(lambda: new(nn.Linear(2, 2 + (RANK == 1)), optimizer))
    new(model, optimizer)
    assert "already has one" in refused(lambda: new(model, optimizer))
    data_parallel.in_job, data_parallel.job = local_sgd.in_job, local_sgd.job
    assert "run apart" in refused(lambda: data_parallel.DistributedDataParallel(model))


def refused(call):
    try:
        call()
    except StreamError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def main(store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(f"{store}/store", RANKS), rank=RANK, world_size=RANKS)
    for elastic in (False, True):
        for case in (as_data_parallel, by_its_formulas, uneven):
            print(f"rank {RANK}: {case.__name__}", flush=True)
            case(elastic)
    refusals()
    print(f"rank {RANK} is done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
