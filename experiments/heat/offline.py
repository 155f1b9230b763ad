"""The training of the offline arms: offline.py SEED MARKS HELD_OUT RESULT RECORD SIMULATIONS STEPS.

The first SIMULATIONS of a record are read into memory, which counts, and drawn from there, so that no loader holds the
training up; each epoch in another order.
"""

import json
import sys
import time
from pathlib import Path

import torch
from surrogate import BATCH, Training

import mpidata


def main(seed: int, marks: int, held_out: int, result: Path, record: str, simulations: int, steps: int) -> None:
    """Train for so many steps."""
    begun = time.perf_counter()
    parameters, times, fields = read(record, simulations)
    training = Training(seed, marks, time.perf_counter() - begun)
    chance = torch.Generator().manual_seed(seed)
    while training.steps < steps:
        order = torch.randperm(len(times), generator=chance)
        for chosen in order[: len(times) // BATCH * BATCH].view(-1, BATCH):
            training.step(parameters[chosen], times[chosen], fields[chosen])
            if training.steps == steps:
                break
    result.write_text(json.dumps(training.result(held_out)))


def read(record: str, simulations: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Read all steps of the first simulations: parameters [n, 6], times [n], temperatures [n, 32, 32]."""
    dataset = mpidata.RecordedDataset(record)
    samples = []
    for i in range(len(dataset)):
        sample = dataset[i]
        if sample["simulation"] >= simulations:  # they are ordered
            break
        samples.append(sample)
    columns = (torch.stack([sample[name] for sample in samples]) for name in ("parameters", "time", "temperature"))
    parameters, times, fields = columns
    return parameters[:, :6], times, fields


if __name__ == "__main__":
    _, seed, marks, held_out, result, record, simulations, steps = sys.argv
    main(int(seed), int(marks), int(held_out), Path(result), record, int(simulations), int(steps))
