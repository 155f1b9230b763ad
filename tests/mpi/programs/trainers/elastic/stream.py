"""Trains on a stream, and records each draw and each step; gradients follow from the numbers of the samples.

Argument: JSON with `batch_size` or `global_batch_size`, `every`, batches per step, `pause_s` after each step,
`validate`, steps between passes over the validation samples, `after`, the batch that freezes the normalizer, `joins`
and `retires`: until this many have joined and retired, each step takes `waits_s` longer, and `kills`, per trainer:
`point:count`, or the number of a step and how to end there. A resumed start follows `kills_again` instead. `loop`:
options of loop/acting.py, which then acts after each step.
"""

import hashlib
import json
import os
import sys
import time

import torch
from book import Book, end, mixed, resumes, wait_for_all
from loop.acting import Acting

import mpidata
from mpidata.trainer.elastic.change import Change
from mpidata.trainer.join import join

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
start = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
book = Book(start)
note = book.note
again = resumes()
kill = options["kills_again" if again else "kills"].get(str(start), "")
dies_at, _, how = kill.partition(" ")
if kill and not how:
    os.environ["MPIDATA_TEST_KILL"] = kill
mpidata.rank()  # joins the job; a spare waits here
joined = join().members is not None and join().members.is_new
if again and kill:
    wait_for_all()  # it may validate, and so die, at once
stream = mpidata.MPIStreamDataset(options["batch_size"], global_batch_size=options["global_batch_size"])
net = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
torch.nn.init.zeros_(net.weight)
model = mpidata.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), 1.0)
normalizers = {"normalizer": mpidata.Normalizer(stream, options["after"])} if options["after"] else {}
mpidata.register(model=model, optimizer=optimizer, **normalizers)
acting = Acting(options["loop"], start, stream.cancel, stream.resumed) if options.get("loop") else None
came: list[str] = []


def changed(change: Change) -> None:
    """Record a change of trainers."""
    came.extend(["joined"] * len(change.joined) + ["retired"] * len(change.retired))
    note(lost=change.lost, rank=change.rank, trainers=change.trainers, joined=change.joined)


mpidata.on_change(changed)
step = stream.resumed // options.get("every", 1)
note(**{"joined_at" if joined else "resumed": stream.resumed}, again=again)


def numbers_of(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return a number per sample; for a window, the number of its first step."""
    is_window = batch["step"].ndim > batch["simulation"].ndim
    return 1 + (batch["step"][..., 0] if is_window else batch["step"]) + 1000 * batch["simulation"]


def measure(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return sums that identify the samples."""
    numbers = numbers_of(batch)
    return torch.tensor([len(numbers), mixed(numbers).sum(), (numbers**2).sum()])


def validate() -> None:
    """Record the sums over all trainers and over this trainer's copies; check its share for duplicates."""
    if not options["validate"]:
        return
    note(validated=stream.validate(measure, 5).tolist(), after=step)
    share = [int(numbers_of(sample)) for sample in torch.utils.data.DataLoader(stream.validation(), batch_size=None)]
    assert len(set(share)) == len(share) <= len(stream.validation())  # more if a trainer has died meanwhile
    whole = stream.validation(share=False)
    note(copied=sum(measure(batch) for batch in torch.utils.data.DataLoader(whole, batch_size=1)).tolist())


if not joined:
    validate()
every = options.get("every", 1)  # batches per step
rows: list[float] = []
for number, batch in enumerate(stream, 1):
    numbers = numbers_of(batch)
    inputs = mixed(numbers).double().reshape(-1, 1)
    if "u" in batch:  # of functions/steps.py
        means = batch["u"].double().mean(dim=(-2, -1)).reshape(len(numbers), -1)
        assert torch.allclose(means, batch["parameters"][:, :1] + batch["step"].reshape(len(numbers), -1))
    else:  # of solvers/pattern.c
        assert torch.equal(batch["cube"][:, 0, 0, 0].double(), 4096.0 * batch["simulation"] + 64.0 * batch["step"])
        assert torch.equal(batch["line"][:, -1] - batch["line"][:, 0], torch.full((len(numbers),), 36.0).double())
    rows += numbers.tolist()
    if number % every:
        with model.no_sync():
            (model(inputs).mean() / every).backward()
        continue
    note(step=step, rows=rows)
    if how and step == int(dies_at):
        end(how)
    (model(inputs).mean() / every).backward()
    gradient = net.weight.grad.item()
    optimizer.step()
    optimizer.zero_grad()
    note(made=step, gradient=gradient, weights=hashlib.sha1(net.weight.detach().numpy().tobytes()).hexdigest())
    for normalizer in normalizers.values():
        note(frozen=bool(normalizer.frozen), at=step, scales=[buffer.tolist() for buffer in normalizer.buffers()])
    rows.clear()
    step += 1
    if acting:
        stream.losses(batch, batch["parameters"][:, 0])
        acting.act(step, batch["simulation"].tolist())
    if options["validate"] and not step % options["validate"]:
        validate()
    lacks = came.count("joined") < options["joins"] or came.count("retired") < options["retires"]
    time.sleep(options["pause_s"] + (options["waits_s"] if lacks and not again else 0))
if normalizers:
    of = stream.statistics()["u"]
    note(counted=int(of.count.sum()), least=of.min.tolist(), greatest=of.max.tolist())
note(end=mpidata.world_size(), rank=mpidata.rank())
