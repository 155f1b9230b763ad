"""Checks a record of random fields against what was put; prints (simulation, step) of its samples, in order.

Reads single samples, batches that workers collate, windows of two steps, and validation samples.
"""

import json
import sys

from comparing import compare, steps_of
from torch.utils.data import DataLoader

import mpidata

path, every = sys.argv[1], int(sys.argv[2])
told = {}
for name, validation in (("training", False), ("validation", True)):
    dataset = mpidata.RecordedDataset(path, validation=validation)
    found = []
    for index in range(len(dataset)):
        compare(dataset[index], 1, constants=dataset.constants)
        found += steps_of(dataset[index], 1)
    collate = mpidata.PackedCollate(dataset.fields)
    joined = []
    for batch in DataLoader(dataset, batch_size=3, collate_fn=collate, num_workers=0 if validation else 2):
        compare(batch, 1)
        joined += steps_of(batch, 1)
    assert joined == found
    for constants in ("apart", "batch"):
        windows = mpidata.RecordedDataset(path, validation=validation, window=2, stride=every, constants=constants)
        apart = windows.constants if constants == "apart" else None
        for batch in DataLoader(windows, batch_size=3, collate_fn=collate):
            compare(batch, 2, constants=apart)
    told[name] = {"found": found, "windows": len(windows)}
json.dump(told, sys.stdout)
