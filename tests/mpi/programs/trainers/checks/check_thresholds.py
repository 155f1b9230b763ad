"""Trainer: checks every element of thresholds.c's samples; writes (simulation, step) of all to seen-<trainer>.json.

Arguments: batch size (0: single samples), "numpy" or "torch".
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

SPEC = json.loads(Path("spec.json").read_text())
VALUES = [np.fromfile(f"values-{field['number']}", field["dtype"]) for field in SPEC["fields"]]


def wanted(field: int, simulation: int, step: int) -> np.ndarray:
    """Return a field as the trainer must receive it."""
    begin = (simulation * 7919 + step * 613 + field * 131) % SPEC["places"]
    return VALUES[field][begin : begin + SPEC["elements"][simulation % len(SPEC["elements"])][step][field]]


def compare(batch: dict[str, np.ndarray]) -> list[tuple[int, int]]:
    steps = list(zip(batch["simulation"].ravel().tolist(), batch["step"].ravel().tolist(), strict=True))
    for at, field in enumerate(SPEC["fields"]):
        arrays, name = [wanted(at, *step) for step in steps], f"f{at}"
        if field["varies"]:
            assert batch[f"n{at}"].ravel().tolist() == list(map(len, arrays)), (name, steps)
        found = batch[name].ravel()
        assert found.dtype == field["dtype"] and found.size == sum(map(len, arrays)), (name, found.size, steps)
        differs = np.flatnonzero(found != np.concatenate(arrays))
        assert not differs.size, (name, steps, differs.size, differs[:9].tolist())
    assert batch["time"].ravel().tolist() == [0.25 * step for _, step in steps]
    return steps


batch_size = int(sys.argv[1])
if sys.argv[2] == "numpy":
    from numpy_stream import stream

    batches = stream(batch_size or None)
else:
    from mpidata import MPIStreamDataset

    batches = (
        {name: tensor.numpy() for name, tensor in batch.items()}
        for batch in MPIStreamDataset(batch_size=batch_size or None, ragged="packed")
    )
seen = [step for batch in batches for step in compare(batch)]
Path(f"seen-{os.environ['RANK']}.json").write_text(json.dumps(seen))
