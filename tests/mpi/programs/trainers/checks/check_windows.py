"""Trainer: checks every element of every window of pattern.c, and writes the windows in order, for each batch and
at the end.

Arguments: samples in a batch; seconds of work for each batch; "torch" to check also the validation samples.
"""

import json
import os
import sys
import time

import numpy as np

from mpidata.trainer.join import join


def check(sample: dict[str, np.ndarray]) -> list[int]:
    """Check a window; return its simulation and first step."""
    simulation, steps = int(sample["simulation"]), sample["step"].reshape(-1)
    assert len(steps) == WINDOW and np.array_equal(steps, steps[0] + STRIDE * np.arange(WINDOW)), steps
    assert np.array_equal(sample["time"].reshape(-1), 0.25 * steps)
    assert np.array_equal(sample["parameters"], PARAMETERS[simulation]), simulation
    for field in join().plan.fields:
        index = np.arange(int(np.prod(field.shape, dtype=int))).reshape(field.shape) % 61
        expected = np.stack([4096 * simulation + 64 * step + index for step in steps]).astype(field.dtype)
        assert np.array_equal(sample[field.name], expected[0] if WINDOW == 1 else expected), (field, simulation, steps)
    return [simulation, int(steps[0])]


def batches(batch_size: int):  # noqa: ANN201
    """Return the batches, through torch or without it."""
    if "torch" not in sys.argv:
        import numpy_stream

        yield from numpy_stream.stream(batch_size)
        return
    import mpidata

    stream = mpidata.MPIStreamDataset(batch_size=batch_size)
    for sample in (validation := stream.validation()):
        held.append(check({name: tensor.numpy() for name, tensor in sample.items()}))
        if len(held) == len(validation):
            break
    for batch in stream:
        stream.losses(batch, batch["simulation"].double())
        yield {name: tensor.numpy() for name, tensor in batch.items()}


with open(os.path.join(os.environ["MPIDATA_RUN"], "parameters.csv")) as file:
    PARAMETERS = [np.array([float(v) for v in line.split(",")[1:]]) for line in list(file)[1:]]
batch_size = int(sys.argv[1])
plan = join().plan
WINDOW, STRIDE = plan.samples_window, plan.samples_stride
seen, held, count = [], [], 0
log = open(f"drawn-{plan.attempt}-{os.environ['RANK']}", "w", buffering=1)
for batch in batches(batch_size):
    if not count:
        print(f"resumed at batch {join().checkpoints.restored.batch}", flush=True)
    count += 1
    seen += (drawn := [check({name: array[i] for name, array in batch.items()}) for i in range(batch_size)])
    print(json.dumps(drawn), file=log)
    time.sleep(float(sys.argv[2]))
with open(f"seen-{os.environ['RANK']}.json", "w") as file:
    json.dump({"seen": seen, "validation": held, "batches": count}, file)
