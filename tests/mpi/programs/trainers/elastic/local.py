"""Trains by LocalSGD on samples whose numbers are the gradient, and records each draw and each average.

Argument: JSON with `data` ("stream", "files", or "loader" with a number of `rows`), `batch_size`, `epochs`, `every`,
`momentum` of the outer optimizer, `pauses_s` after each step, per trainer, `joins` (run until this many have joined),
`stops`, per trainer: the batches of an epoch that it draws, and `kills`, per trainer: `point:count`, or the number of
a step and how to end there.
"""

import hashlib
import itertools
import json
import os
import sys
import time
from typing import Any

import torch
from book import Book, end

import mpidata

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
start = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
book = Book(start)
note = book.note
kill = "" if book.resumes else options["kills"].get(str(start), "")
dies_at, _, how = kill.partition(" ")
if kill and not how:
    os.environ["MPIDATA_TEST_KILL"] = kill
pause_s = options.get("pauses_s", {}).get(str(start), 0.0)
mpidata.rank()  # joins the job; a spare waits here


class Rows(torch.utils.data.Dataset):
    """The same rows as the part files have."""

    def __len__(self) -> int:
        return options["rows"]

    def __getitem__(self, index: int) -> dict[str, int]:
        return {"row": index + 1}


class Count:
    """Counts averages and trainers that join; a trainer that joins continues the counts of the others."""

    def __init__(self) -> None:
        self.averages = self.joined = 0

    def state_dict(self) -> dict[str, int]:
        """Return the counts."""
        return {"averages": self.averages, "joined": self.joined}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore the counts."""
        self.averages, self.joined = state["averages"], state["joined"]

    def change(self, change: Any) -> None:
        """Count and record a change."""
        self.joined += len(change.joined)
        note(lost=change.lost, joined=change.joined, rank=change.rank, trainers=change.trainers)


class Noted(mpidata.LocalSGD):
    """Records each average."""

    def _average(self, *how: Any) -> Any:
        waiting = super()._average(*how)
        values = [t.detach() for t in [*model.parameters(), *model.buffers()]]
        digest = hashlib.sha1(b"".join(value.numpy().tobytes() for value in values)).hexdigest()
        note(average=count.averages, weight=model.weight.item(), weights=digest)
        count.averages += 1
        return waiting


class Model(torch.nn.Module):
    """The gradient of `weight` is the mean of the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 60), torch.nn.BatchNorm1d(60), torch.nn.Linear(60, 60))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        scaled = torch.stack([rows, -rows], 1).float() / 1000
        return (self.weight * rows).mean() + self.net(scaled.repeat(2, 1)).square().mean()


if options["data"] == "stream":
    together = options.get("global_batch_size")
    data = mpidata.MPIStreamDataset(None if together else options["batch_size"], global_batch_size=together)
elif options["data"] == "loader":
    data = mpidata.DataLoader(Rows(), options["batch_size"], True, share=True)
else:
    data = mpidata.FileDataset("parts/*.npz", options["batch_size"], shuffle="rows", drop_last=False)
torch.manual_seed(start)
count = Count()
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1.0)
momentum = options["momentum"]
outer = (lambda of: torch.optim.SGD(of, lr=1.0, momentum=momentum)) if momentum else None
local = Noted(model, optimizer, options["every"], outer)
mpidata.on_change(count.change)
mpidata.register(model=model, optimizer=optimizer, count=count)
note(resumed=data.resumed, rank=mpidata.rank(), averages=count.averages)
steps = 0
stop = options.get("stops", {}).get(str(start))


def goes_on(epoch: int) -> bool:
    """Return whether to run this epoch."""
    return epoch < options["epochs"] or count.joined < options.get("joins", 0)


first = 0 if options["data"] == "stream" else data.resumed[0]
for epoch in [0] if options["data"] == "stream" else itertools.takewhile(goes_on, itertools.count(first)):
    for batch in itertools.islice(data, stop):
        rows = batch["row"] if "row" in batch else 1 + batch["step"] + 1000 * batch["simulation"]
        note(step=steps, epoch=epoch, rows=rows.tolist())
        if how and steps == int(dies_at):
            end(how)
        optimizer.zero_grad()
        model(rows.double()).backward()
        optimizer.step()
        steps += 1
        time.sleep(pause_s)
note(end=mpidata.world_size(), rank=mpidata.rank())
