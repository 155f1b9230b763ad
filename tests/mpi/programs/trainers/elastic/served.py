"""Trains with parameter servers, and records each draw and each pulled version.

Argument: JSON with `data` ("stream" or "files"), `batch_size`, `epochs`, `staleness`, `optimizer` and its `settings`,
`pauses_s` after each step, per trainer, `stops`, per trainer: its last push, `kills`, per trainer: `point:count`, or
the number of a step and how to end there, `kills_again`, for a resumed start, `joins` and `retires`: until this many
have joined and retired, each step takes `waits_s` longer, `width` of the model, and `ddp`: whether torch's
DistributedDataParallel trains on the same batches for comparison.
"""

import json
import os
import sys
import time

import torch
from book import Book, end

import mpidata
from mpidata.trainer.elastic.change import Change

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
trainer = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
book = Book(trainer)
note = book.note
kill = options.get("kills_again" if book.resumes else "kills", {}).get(str(trainer), "")
dies_at, _, how = kill.partition(" ")
if kill and not how:
    os.environ["MPIDATA_TEST_KILL"] = kill
resumes = book.resumes
mpidata.rank()  # joins the job; a spare waits here
came: list[str] = []


def changed(change: Change) -> None:
    """Record a change of trainers."""
    came.extend(["joined"] * len(change.joined) + ["retired"] * len(change.retired))
    note(lost=change.lost, rank=change.rank, trainers=change.trainers, joined=change.joined)


mpidata.on_change(changed)


width = options.get("width", 30)


class Model(torch.nn.Module):
    """The gradient of `weight` is the mean of the rows; that of an embedding row follows from its number of uses."""

    def __init__(self, embedding: torch.nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.weight = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
        self.net = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        scaled = torch.stack([rows, -rows], 1).float() / 1000
        used = self.embedding(rows % 50).sum() / len(rows)
        return (self.weight.sum() * rows).mean() + self.net(scaled).square().mean() + used


if options["data"] == "stream":
    data = mpidata.MPIStreamDataset(options["batch_size"])
    epochs = range(1)
else:
    drops = not options.get("kills") and not options.get("joins")
    data = mpidata.FileDataset("parts/*.npz", options["batch_size"], shuffle="rows", drop_last=drops)
    epochs = range(data.resumed[0], options["epochs"])
torch.manual_seed(trainer)
model = Model(mpidata.ServedEmbedding(50, 3, seed=7))
optimizer, settings = getattr(torch.optim, options["optimizer"]), options["settings"]
server = mpidata.ParameterServer(model, optimizer, staleness=options["staleness"], **settings)
server.pull()
note(resumed=data.resumed, version=server.version, first=model.net[0].bias[0].item())
if options.get("ddp"):
    mpidata.init_process_group()
    reference = Model(torch.nn.Embedding(50, 3))
    reference.load_state_dict({**model.state_dict(), "embedding.weight": model.embedding(torch.arange(50)).detach()})
    reference = torch.nn.parallel.DistributedDataParallel(reference)
    steps_it = optimizer(reference.parameters(), **settings)
pause_s = options.get("pauses_s", {}).get(str(trainer), 0.0)
pushes = 0
for epoch in epochs:
    for batch in data:
        rows = batch["row"] if "row" in batch else 1 + batch["step"] + 1000 * batch["simulation"]
        server.pull()
        note(epoch=epoch, pull=pushes, version=server.version, ahead=server.ahead, rows=rows.tolist())
        if how and pushes == int(dies_at):
            end(how)
        model.zero_grad()
        model(rows).backward()
        server.push()
        pushes += 1
        if options.get("ddp"):
            steps_it.zero_grad()
            reference(rows).backward()
            steps_it.step()
        lacks = came.count("joined") < options.get("joins", 0) or came.count("retired") < options.get("retires", 0)
        time.sleep(pause_s + (options.get("waits_s", 1.0) if lacks and not resumes else 0))
        if pushes == options.get("stops", {}).get(str(trainer)):
            sys.exit()
server.pull()
rows = model.embedding(torch.arange(50)).detach()
note(end=pushes, version=server.version, weight=model.weight.tolist(), embedding=rows.tolist())
if options.get("ddp"):
    own = dict(model.named_parameters()) | {"embedding.weight": rows}
    apart = [(own[name] - other).abs().max() / other.abs().max() for name, other in reference.module.named_parameters()]
    note(apart=max(apart).item())
