"""Trains on rows whose numbers are the gradient, and records each draw and each step.

Argument: JSON with `batch_size`, `epochs`, `shuffle`, `drop_last`, `loader` (a DataLoader of n rows, not files),
`group` (also use torch.distributed), `alone` (do not train), `joins`, `retires` and `loses` (run until this many have
joined, retired and died), and `kills`, per trainer: `point:count`, or the number of a step and how to end there.
"""

import hashlib
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from book import Book, end, mixed

import mpidata

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
start = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
book = Book(start)
note = book.note
kill = "" if book.resumes else options["kills"].get(str(start), "")  # a resumed start is not killed
dies_at, _, how = kill.partition(" ")
if kill and not how:
    os.environ["MPIDATA_TEST_KILL"] = kill
mpidata.rank()  # joins the job; a spare waits here


class Rows(torch.utils.data.Dataset):
    """The same rows as the part files have."""

    def __len__(self) -> int:
        return options["loader"]

    def __getitem__(self, index: int) -> dict[str, int]:
        return {"row": index + 1}


batch_size, drop_last = options["batch_size"], options["drop_last"]
if options.get("loader"):
    data = mpidata.DataLoader(Rows(), batch_size, bool(options["shuffle"]), drop_last=drop_last, share=True)
else:
    parts = str(Path("parts") / "*.npz")
    data = mpidata.FileDataset(parts, batch_size, shuffle=options["shuffle"], drop_last=drop_last)


class Model(torch.nn.Module):
    """The gradient of `weight` is the mean of the rows; `odd` is used on odd trainers only, `never` on no trainer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.odd = torch.nn.Parameter(torch.zeros(3))
        self.never = torch.nn.Parameter(torch.zeros(2))
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 600), torch.nn.BatchNorm1d(600), torch.nn.Linear(600, 600))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        scaled = torch.stack([rows, -rows], 1).float() / 1000
        loss = (self.weight * rows).mean() + self.net(scaled.repeat(2, 1)).square().mean()
        return loss + self.odd.sum() if mpidata.rank() % 2 else loss


if options.get("group"):
    mpidata.init_process_group()
torch.manual_seed(start)
model = mpidata.DistributedDataParallel(Model())
optimizer = torch.optim.SGD(model.parameters(), 1.0)


class Steps:
    """Counts this start's steps and changes of trainers; a trainer that joins continues the counts of the others."""

    def __init__(self) -> None:
        self.made = self.joined = self.retired = self.lost = 0

    def state_dict(self) -> dict[str, int]:
        """Return the counts."""
        return {"made": self.made, "joined": self.joined, "retired": self.retired}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the counts; a resumed start records its first step, and counts from 0."""
        if book.resumes:
            note(from_step=state["made"])
        else:
            self.made, self.joined, self.retired = state["made"], state["joined"], state["retired"]

    def change(self, change: Any) -> None:
        """Count and record a change."""
        self.joined += len(change.joined)
        self.retired += len(change.retired)
        self.lost += len(change.lost)
        note(lost=change.lost, joined=change.joined, rank=change.rank, trainers=change.trainers)

    def go_on(self, epoch: int) -> bool:
        """Return whether to run this epoch."""
        if book.resumes:  # at least to the end of the epoch
            return epoch < options["epochs"] or epoch == data.resumed[0]
        came = {"joins": self.joined, "retires": self.retired, "loses": self.lost}
        return epoch < options["epochs"] or any(number < options.get(name, 0) for name, number in came.items())


steps = Steps()
mpidata.on_change(steps.change)
mpidata.register(model=model, optimizer=optimizer, steps=steps)
note(resumed=data.resumed, rank=mpidata.rank())
for epoch in itertools.takewhile(steps.go_on, itertools.count(data.resumed[0])):
    for batch in data:
        note(step=steps.made, epoch=epoch, rows=batch["row"].tolist())
        steps.made += bool(options.get("alone"))
        if how and steps.made == int(dies_at):
            end(how)
        if options.get("alone"):
            continue
        optimizer.zero_grad()
        model(mixed(batch["row"]).double()).backward()
        weights = b"".join(t.detach().numpy().tobytes() for t in [*model.parameters(), *model.buffers()])
        gradient = model.module.weight.grad.item()
        assert model.module.never.grad is None
        optimizer.step()
        note(made=steps.made, gradient=gradient, weights=hashlib.sha1(weights).hexdigest())
        steps.made += 1
    if options.get("group"):
        ones = torch.ones(1)
        torch.distributed.all_reduce(ones)
        note(group=int(ones), number=torch.distributed.get_rank(), rank=mpidata.rank(), living=mpidata.world_size())
note(end=mpidata.world_size(), rank=mpidata.rank())
