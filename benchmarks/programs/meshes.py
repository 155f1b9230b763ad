"""Trainer: takes batches of meshes from the stream. Arguments: `packed` or `padded`, folder."""

import sys
from pathlib import Path

import torch

import mpidata
from benchmarks.consume import consume
from benchmarks.contender import BATCH, Cell
from benchmarks.gate import Gate

kind, folder = sys.argv[1], Path(sys.argv[2])
cell = Cell.read(folder)
stream = mpidata.MPIStreamDataset(batch_size=BATCH)


def ends():
    """Return the first and last value of each mesh."""
    for batch in stream:
        u = batch["u"]
        if kind == "packed":
            offsets = batch["nodes_offsets"]
            yield torch.stack([u[offsets[:-1]], u[offsets[1:] - 1]], dim=1)
        else:
            yield torch.stack([u[:, 0], u[torch.arange(BATCH), batch["count"] - 1]], dim=1)


consume(ends(), cell, Gate(folder, cell.limit_s))
for _ in stream:
    pass  # drain the stream so that the job ends normally
