"""The training of the offline arms: offline.py SEED MARKS HELD_OUT RESULT RECORD SIMULATIONS STEPS RATE.

The first SIMULATIONS of a record are read into memory, which counts, and drawn from there, so that no loader holds the
training up; each epoch in another order. With the RATE `cosine` the rate goes down to 0.
"""

import json
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import torch
from surrogate import BATCH, Training


def main(
    seed: int, marks: int, held_out: int, result: Path, record: str, simulations: int, steps: int, rate: str
) -> None:
    """Train for so many steps."""
    begun = time.perf_counter()
    parameters, times, fields, _ = read(record, simulations)
    known = steps if rate == "cosine" else None
    training = Training(seed, marks, time.perf_counter() - begun, known)
    chance = torch.Generator().manual_seed(seed)
    while training.steps < steps:
        order = torch.randperm(len(times), generator=chance)
        for chosen in order[: len(times) // BATCH * BATCH].view(-1, BATCH):
            training.step(parameters[chosen], times[chosen], fields[chosen])
            if training.steps == steps:
                break
    result.write_text(json.dumps(training.result(held_out)))


def read(record: str, simulations: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Read all steps of the first simulations, as they came.

    Returns their parameters [n, 6], times [n], temperatures [n, 32, 32], and the ids of their simulations [n]. The file
    of the one trainer at once, as docs/recording.md describes it: sample by sample it would take a minute.
    """
    with h5py.File(Path(record) / "trainer-0000.h5") as file:
        rows = np.flatnonzero(file["simulation"][()] < simulations)
        names = ("parameters", "time", "fields/temperature", "simulation")
        parameters, times, fields, ids = (torch.from_numpy(file[name][()][rows]) for name in names)
    return parameters[:, :6], times, fields, ids


if __name__ == "__main__":
    _, seed, marks, held_out, result, record, simulations, steps, rate = sys.argv
    main(int(seed), int(marks), int(held_out), Path(result), record, int(simulations), int(steps), rate)
