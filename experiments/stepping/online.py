"""The training script of all arms: online.py EQUATION SEED BATCHES HELD_OUT RESULT."""

import json
import sys
from pathlib import Path

from problem import EQUATIONS
from surrogate import BATCH, Training

import mpidata


def main(equation: str, seed: int, batches: int, held_out: int, result: Path) -> None:
    """Train with all that comes, and tell the losses."""
    stream = mpidata.MPIStreamDataset(batch_size=BATCH)
    training = Training(EQUATIONS[equation], seed, batches)
    columns = [stream.parameter_names.index(name) for name in EQUATIONS[equation].space]  # the job has more, in its order
    for batch in stream:
        losses = training.step(batch["parameters"][:, columns], batch["u"])
        stream.losses(batch, losses)
    result.write_text(json.dumps(training.result(held_out)))


if __name__ == "__main__":
    _, equation, seed, batches, held_out, result = sys.argv
    main(equation, int(seed), int(batches), int(held_out), Path(result))
