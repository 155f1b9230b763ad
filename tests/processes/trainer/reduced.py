"""Compare mpidata.DistributedDataParallel over MPI with torch's over gloo on the same models; run by several ranks.

Arguments: a seed, a folder for the store, and names of cases; without names, all cases run.
"""

import copy
import functools
import sys
from types import SimpleNamespace

import torch
import torch.distributed as dist
from mpi4py import MPI
from torch import nn

from mpidata.errors import StreamError
from mpidata.trainer.elastic import calls, data_parallel
from mpidata.trainer.elastic.members import Members
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.shares.share import Share

CLOSE = {
    torch.bfloat16: (0.02, 0.002),
    **dict.fromkeys((torch.float32, torch.complex64), (1e-5, 1e-6)),
    **dict.fromkeys((torch.float64, torch.complex128), (1e-12, 1e-14)),
}
RANK, RANKS = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()


class Dense(nn.Module):
    """A model of two layers, and the base of the other models."""

    dtype, steps, options = torch.float32, 3, {}

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 7, dtype=self.dtype)
        self.second = nn.Linear(7, 3, dtype=self.dtype)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).abs().square().mean()

    @staticmethod
    def backward(model, draw):
        model(draw()).backward()


class Large(Dense):
    """A model with several buckets of sums: 1 MB in the first one, then 25 MB."""

    def __init__(self):
        super().__init__()
        self.large = nn.ModuleList(nn.Linear(1300, 1300) for _ in range(5))

    def forward(self, x):
        y = x.repeat(1, 260)
        for layer in self.large:
            y = torch.tanh(layer(y))
        return super().forward(y[:, :5])


class Normed(Dense):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(7)

    def forward(self, x):
        return self.second(self.norm(self.first(x))).square().mean()


class Unused(Dense):
    """`some` is used on odd ranks, `once` in the first step, `never` not at all."""

    options = {"find_unused_parameters": True}

    def __init__(self):
        super().__init__()
        self.some, self.once, self.never = (nn.Parameter(torch.randn(4)) for _ in range(3))
        self.step = 0

    def forward(self, x):
        loss = super().forward(x)
        loss = loss + self.some.square().sum() if RANK % 2 else loss
        loss = loss + self.once.square().sum() if self.step == 0 else loss
        self.step += 1
        return loss


class Accumulated(Dense):
    """Two passes without a sum, then one with it; gradients are not cleared after the second step."""

    @staticmethod
    def backward(model, draw):
        with model.no_sync():
            for _ in range(2):
                model(draw()).backward()
        model.own = {n: None if p.grad is None else p.grad.clone() for n, p in model.module.named_parameters()}
        model(draw()).backward()


class UnusedAccumulated(Unused):
    """`some` and `once` are not used in the pass that sums, only in an earlier one."""

    def forward(self, x):
        loss = Dense.forward(self, x)
        use = self.step % 3 == 0
        self.step += 1
        return loss + self.some.square().sum() + self.once.square().sum() if use else loss

    backward = Accumulated.backward


class Twice(Dense):
    @staticmethod
    def backward(model, draw):
        (model(draw()) + 2 * model(draw())).backward()


class Complex(Dense):
    dtype = torch.complex64

    def __init__(self):
        super().__init__()
        self.turned = nn.Parameter(torch.randn(5, dtype=self.dtype))

    def forward(self, x):
        return super().forward(x * self.turned.conj()) + self.turned.conj().real.sum()


class ComplexDouble(Complex):
    dtype = torch.complex128


class Double(Dense):
    dtype = torch.float64


class Half(Dense):
    dtype = torch.bfloat16


class Mixed(Dense):
    """A model of several dtypes, with scalars and an empty parameter."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.shift = nn.Parameter(torch.randn(3, 2, 5).to(torch.bfloat16))

    def forward(self, x):
        return super().forward(x + self.shift.float().mean((0, 1))) * self.scale


class Frozen(Dense):
    def __init__(self):
        super().__init__()
        self.first.weight.requires_grad_(False)


class Tied(Dense):
    """Two modules share one parameter."""

    def __init__(self):
        super().__init__()
        self.third = nn.Linear(5, 7)
        self.third.weight = self.first.weight

    def forward(self, x):
        return super().forward(x) + self.third(x.flip(0)).square().mean()


class Permuted(Dense):
    """Parameters and gradients that are not contiguous."""

    def __init__(self):
        super().__init__()
        self.image = nn.Conv2d(2, 3, 3, padding=1).to(memory_format=torch.channels_last)
        self.across = nn.Parameter(torch.randn(7, 5).t())

    def forward(self, x):
        image = self.image((x @ self.across).reshape(1, 2, -1, 7).contiguous(memory_format=torch.channels_last))
        return super().forward(x) + image.square().mean()


def compare(case, seed):
    torch.manual_seed(100 * seed + RANK)  # the values differ between ranks: those of the first rank count
    module = case()
    ours = data_parallel.DistributedDataParallel(copy.deepcopy(module), **case.options)
    theirs = nn.parallel.DistributedDataParallel(module, **case.options)
    check(ours.module.state_dict(), theirs.module.state_dict(), exactly=True)
    optimizers = [torch.optim.SGD(model.parameters(), 0.01) for model in (ours, theirs)]
    for step in range(case.steps):
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            generator = torch.Generator().manual_seed(1000 * seed + 10 * step + RANK)
            if step != 1:
                optimizer.zero_grad()
            case.backward(model, lambda g=generator: torch.randn(6, 5, generator=g, dtype=torch.float64).to(case.dtype))
        check(gradients(ours), gradients(theirs))
        check(getattr(ours, "own", {}), getattr(theirs, "own", {}))  # gradients of passes without a sum
        for optimizer in optimizers:
            optimizer.step()
        for name, value in ours.module.state_dict().items():
            assert all(torch.equal(value, other) for other in everywhere(value)), (name, "differs between ranks")
        for name, value in theirs.module.named_buffers():
            dist.broadcast(value, 0)  # torch does so at the next forward pass
            torch.testing.assert_close(ours.module.get_buffer(name), value)


def as_trainer(members, total=None, samples=0):
    """Act as a trainer, with these members or none, that has drawn `samples` samples of a global batch of `total`."""
    trainer = SimpleNamespace(members=members, apart=None, share=Share(), replica=Replica())
    trainer.share.total = total
    if total:
        trainer.share.took(samples, RANKS)
    for of_job in (data_parallel, calls):
        of_job.in_job, of_job.job = lambda: True, SimpleNamespace(join=lambda: trainer)
    return trainer


class Rows(Double):
    """A model whose loss is the mean over the samples."""

    def forward(self, x):
        return self.second(torch.tanh(self.first(x))).square().sum(dim=1).mean()


def weighed(seed):
    """With batches that differ in size, the gradient is that of all samples together, with either class."""
    members = calls.job.join().members
    torch.manual_seed(seed)
    module, total = Rows(), 2 * RANKS + 1
    everything = torch.randn(total, 5, dtype=torch.float64)
    own = everything[:3] if RANK == 0 else everything[2 * RANK + 1 :][:2]  # shares by largest remainder
    for of in (members, None):
        trainer = as_trainer(of, total, len(own))
        model = data_parallel.DistributedDataParallel(copy.deepcopy(module))
        for _ in range(3):
            trainer.share.took(len(own), RANKS)
            check(gradient_of(model, own), gradient_of(copy.deepcopy(module), everything))
        as_trainer(of)
        model = data_parallel.DistributedDataParallel(copy.deepcopy(module))
        model.weight = torch.tensor(len(own))
        check(gradient_of(model, own), gradient_of(copy.deepcopy(module), everything))
        model.weight = 0 if RANK == 0 else len(own)
        nothing = gradient_of(model, own[:0] if RANK == 0 else own)  # the mean of nothing is NaN
        check(nothing, gradient_of(copy.deepcopy(module), everything[3:]))
        check(*(with_three_each(module, own, of, shared) for shared in (None, 3 * RANKS)), exactly=True)
    assert "weight is -1" in refused(lambda: setattr(model, "weight", -1))
    assert "weight is 'many'" in refused(lambda: setattr(model, "weight", "many"))
    as_trainer(members)


def gradient_of(model, x):
    model.zero_grad()
    model(x).backward()
    return {name: parameter.grad.clone() for name, parameter in getattr(model, "module", model).named_parameters()}


def with_three_each(module, own, members, total):
    """Return the gradients if all have drawn three samples, of global batches or not."""
    as_trainer(members, total, 3)
    return gradient_of(data_parallel.DistributedDataParallel(copy.deepcopy(module)), own)


def gradients(model):
    return {name: parameter.grad for name, parameter in model.module.named_parameters()}


def check(ours, theirs, exactly=False):
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert (ours[name] is None) == (value is None), (name, ours[name], value)
        if value is not None:
            rtol, atol = (0, 0) if exactly else CLOSE[value.dtype]
            told = functools.partial("{}: {}".format, name)
            torch.testing.assert_close(ours[name], value, rtol=rtol, atol=atol, msg=told)


def everywhere(value):
    return MPI.COMM_WORLD.allgather(value.detach().clone())


def sums(seed):
    """mpidata.all_reduce gives the results of torch's."""
    torch.manual_seed(100 * seed + RANK)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8):
        for op, theirs in (("sum", "SUM"), ("max", "MAX"), ("min", "MIN"), ("mean", "SUM")):
            value = (30 * torch.rand(4, 3, dtype=torch.float64)).to(dtype).t()
            expected = value.contiguous().clone()
            dist.all_reduce(expected, getattr(dist.ReduceOp, theirs))
            if op == "mean" and not dtype.is_floating_point:
                assert "integers have no mean" in refused(lambda v=value: calls.all_reduce(v, "mean"))
                continue
            assert calls.all_reduce(value, op) is value
            torch.testing.assert_close(value, expected / RANKS if op == "mean" else expected)
    assert 'op is "product"' in refused(lambda: calls.all_reduce(torch.ones(1), "product")).replace("'", '"')
    assert "is torch.bfloat16 on cpu" in refused(lambda: calls.all_reduce(torch.ones(1, dtype=torch.bfloat16)))
    needs = torch.nn.Parameter(torch.ones(2))
    assert calls.all_reduce(needs).tolist() == [RANKS, RANKS]
    assert (calls.rank(), calls.world_size()) == (RANK, RANKS)


def refused(call):
    try:
        call()
    except StreamError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def refusals(seed):
    """Every rank refuses modules that differ between ranks, and modules and calls that are not supported."""
    make = data_parallel.DistributedDataParallel
    for module in (nn.Linear(2, 2 + (RANK == 1)), nn.Linear(2, 2, dtype=torch.float64 if RANK == 1 else torch.float32)):
        assert "the module differs between trainers" in refused(lambda module=module: make(module))
    assert "does not support mixed_precision with" in refused(lambda: make(nn.Linear(2, 2), mixed_precision=3))
    assert "no parameter of the module requires" in refused(lambda: make(nn.Linear(2, 2).requires_grad_(False)))
    assert "a parameter is on meta" in refused(lambda: make(nn.Linear(2, 2, device="meta")))
    model = make(nn.Linear(2, 2))
    assert "DistributedDataParallel.join cannot be used with 'trainers.elastic'" in refused(model.join)
    assert "register_comm_hook cannot" in refused(lambda: model.register_comm_hook(None, print))
    sparse = make(nn.Embedding(4, 2, sparse=True))
    assert "does not support sparse gradients" in refused(lambda: sparse(torch.tensor([1])).sum().backward())


MODELS = (
    Dense, Large, Normed, Unused, Accumulated, UnusedAccumulated, Twice, Complex, ComplexDouble, Double, Half, Mixed,
    Frozen, Tied, Permuted,
)  # fmt: skip


def main(seed, store, *names):
    torch.set_num_threads(1)
    members = Members(MPI.COMM_WORLD.Dup(), lambda seconds: None)
    as_trainer(members)
    dist.init_process_group("gloo", store=dist.FileStore(f"{store}/store", RANKS), rank=RANK, world_size=RANKS)
    for case in (*MODELS, weighed, sums, refusals):
        if case.__name__ in (names or case.__name__):
            print(f"rank {RANK}: {case.__name__}", flush=True)
            compare(case, int(seed)) if case in MODELS else case(int(seed))
    print(f"rank {RANK} is done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
