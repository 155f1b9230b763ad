"""Trainer: writes the statistics of `u` at the end, and prints the error for an axis without channels."""

import json
from pathlib import Path

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=1)
for _ in stream:
    pass
try:
    stream.statistics(axes={"u": 1})
except mpidata.errors.StreamError as error:
    print(error)
of = vars(stream.statistics()["u"])
Path("result.json").write_text(json.dumps({key: value.tolist() for key, value in of.items()}))
