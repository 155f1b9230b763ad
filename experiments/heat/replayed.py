"""Training of arms that differ in the buffer, on a record's samples in order of arrival, without a job.

replayed.py SEED MARKS HELD_OUT RESULT RECORD SIMULATIONS REPEATS POLICY PART: each sample that arrives allows REPEATS
draws on average, as with `buffer.repeats`, so that a run does not depend on the load of the machine. The capacity of
the buffer is a PART of all samples.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from buffers import Reservoir as Buffer
from buffers import make_buffer
from offline import read
from surrogate import BATCH, Training


def main(training: Training, buffer: Buffer, samples: Sequence[torch.Tensor], repeats: int) -> list[int]:
    """Train until the budget of draws is used up; return how many samples were drawn 0, 1, 2 ... times."""
    parameters, times, fields, _ = samples
    count = len(times)

    def train_up_to(steps: int) -> None:
        while training.steps < steps and buffer.ready(BATCH):
            chosen = torch.from_numpy(buffer.draw(BATCH))
            training.step(parameters[chosen], times[chosen], fields[chosen])

    for sample in range(count):
        while buffer.full():
            train_up_to(training.steps + 1)
        buffer.add(sample)
        train_up_to((sample + 1) * repeats // BATCH)
    buffer.end()
    train_up_to(count * repeats // BATCH)
    return np.bincount(np.minimum(buffer.draws, 4 * repeats)).tolist()


if __name__ == "__main__":
    _, seed, marks, held_out, result, record, simulations, repeats, policy, part = sys.argv
    samples = read(record, int(simulations))
    buffer = make_buffer(policy, float(part), int(repeats), samples[3].numpy(), np.random.default_rng(int(seed)))
    steps = len(samples[1]) * int(repeats) // BATCH
    training = Training(int(seed), int(marks), steps=steps)
    draws = main(training, buffer, samples, int(repeats))
    Path(result).write_text(json.dumps(training.result(int(held_out)) | {"draws": draws}))
