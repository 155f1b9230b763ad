"""Trainer: draws single samples, collates and checks them, and writes what came to seen-<trainer>.json."""

import json
import os
import sys

from comparing import compare, steps_of
from torch.utils.data import DataLoader

import mpidata

batch_size, window = (int(argument) for argument in sys.argv[1:])
stream = mpidata.MPIStreamDataset()
drawn: list[tuple[int, int]] = []
collate = mpidata.PackedCollate(stream.fields)
for batch in DataLoader(stream.validation(), batch_size=batch_size, collate_fn=collate):
    compare(batch, window)
for batch in DataLoader(stream, batch_size=batch_size, collate_fn=collate):
    compare(batch, window)
    drawn += steps_of(batch, window)[::window]
with open(f"seen-{os.environ['RANK']}.json", "w") as file:
    json.dump(drawn, file)
