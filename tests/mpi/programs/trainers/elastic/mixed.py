"""Trains on a stream and on rows of files, one batch of each per step, and records each draw and each step.

Argument: as for stream.py, without `every`. The gradient of `stream` follows from the numbers of the samples, the
gradient of `files` from the rows.
"""

import hashlib
import json
import os
import sys
import time

import torch
from book import Book, end, mixed, resumes

import mpidata
from mpidata.trainer.join import join

options = json.loads(sys.argv[1])
torch.set_num_threads(1)
start = int(os.environ["OMPI_COMM_WORLD_RANK"]) - 1
mpidata.rank()  # joins the job; a spare waits here
joined = join().members is not None and join().members.is_new
book = Book(start)
note = book.note
stream = mpidata.MPIStreamDataset(options["batch_size"])
files = mpidata.FileDataset("parts/*.npz", options["batch_size"], shuffle="rows")
kill = options["kills_again" if resumes() else "kills"].get(str(start), "")
dies_at, _, how = kill.partition(" ")
if kill and not how:
    os.environ["MPIDATA_TEST_KILL"] = kill


class Model(torch.nn.Module):
    """Two weights; the gradient of each is the mean of its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.stream, self.files = (torch.nn.Parameter(torch.zeros((), dtype=torch.float64)) for _ in range(2))

    def forward(self, samples: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return a loss."""
        return (self.stream * mixed(samples).double()).mean() + (self.files * mixed(rows).double()).mean()


model = mpidata.DistributedDataParallel(Model())
optimizer = torch.optim.SGD(model.parameters(), 1.0)
mpidata.register(model=model, optimizer=optimizer)
step = stream.resumed
note(**{"joined_at" if joined else "resumed": stream.resumed}, again=resumes())
epoch, rows_of = files.resumed[0], iter(files)
for batch in stream:
    if (drawn := next(rows_of, None)) is None:  # between the two draws of a step
        epoch, rows_of = epoch + 1, iter(files)
        drawn = next(rows_of)
    samples, rows = 1 + batch["step"] + 1000 * batch["simulation"], drawn["row"]
    note(step=step, rows=samples.tolist())
    note(of_step=step, epoch=epoch, of_files=rows.tolist())
    if how and step == int(dies_at):
        end(how)
    optimizer.zero_grad()
    model(samples, rows).backward()
    gradient, of_files = (weight.grad.item() for weight in model.module.parameters())
    optimizer.step()
    weights = b"".join(weight.detach().numpy().tobytes() for weight in model.parameters())
    note(made=step, gradient=gradient, files=of_files, weights=hashlib.sha1(weights).hexdigest())
    step += 1
    time.sleep(options.get("pause_s", 0))
note(end=mpidata.world_size(), rank=mpidata.rank())
