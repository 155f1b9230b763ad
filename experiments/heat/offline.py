"""Training script of the offline arms: offline.py SEED MARKS HELD_OUT RESULT RECORD SIMULATIONS STEPS RATE.

The first SIMULATIONS of a record are read into memory, which counts as time, and drawn from there, so that no loader
delays the training. Each epoch has a different order. With the RATE `cosine` the learning rate decreases to 0.
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
    """Train for the given number of steps."""
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
    """Read all steps of the first simulations, in order of arrival.

    Return parameters [n, 6], times [n], temperatures [n, 32, 32] and simulation ids [n]. The trainer's file is read as
    a whole (see docs/recording.md), because single samples would take a minute.
    """
    with h5py.File(Path(record) / "trainer-0000.h5") as file:
        rows = np.flatnonzero(file["simulation"][()] < simulations)
        names = ("parameters", "time", "fields/temperature", "simulation")
        parameters, times, fields, ids = (torch.from_numpy(file[name][()][rows]) for name in names)
    return parameters[:, :6], times, fields, ids


if __name__ == "__main__":
    _, seed, marks, held_out, result, record, simulations, steps, rate = sys.argv
    main(int(seed), int(marks), int(held_out), Path(result), record, int(simulations), int(steps), rate)
