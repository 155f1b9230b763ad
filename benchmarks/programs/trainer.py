"""Trainer: takes batches from the stream. Arguments: folder, what to count, number of groups.

What to count: `once`, the samples of a stream that brings each one once; if samples repeat, `fresh` for those not seen
before, or `draws` for all.
"""

import sys
from pathlib import Path

import numpy as np

import mpidata
from benchmarks.consume import consume
from benchmarks.contender import BATCH, Cell
from benchmarks.gate import Gate

MOST_STEPS = 1 << 26  # untouched memory costs nothing

cell = Cell.read(Path(sys.argv[1]))
gate = Gate(cell.folder, cell.limit_s)
stream = mpidata.MPIStreamDataset(batch_size=BATCH)
seen = np.zeros(MOST_STEPS, bool)


def batches():
    for batch in stream:
        yield batch["u"]


def marked():
    for batch in stream:
        seen[batch["step"].numpy()] = True
        yield batch["u"]


def fresh() -> int:
    return np.count_nonzero(seen[cell.warm :])


counting = sys.argv[2]
if counting == "once":
    consume(batches(), cell, gate, producers=int(sys.argv[3]))
else:
    consume(marked(), cell, gate, warmed=lambda: seen[cell.warm - 1], fresh=fresh if counting == "fresh" else None)
for _ in stream:
    pass  # drain the stream so that the job ends normally
