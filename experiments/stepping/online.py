"""Training script of all arms: online.py EQUATION SEED BATCHES HELD_OUT RESULT, and `watched` for more details."""

import json
import os
import sys
import time
from pathlib import Path

from arms import PUBLISHED
from problem import EQUATIONS
from surrogate import BATCH, Training
from watching import Watch

import mpidata

_PUBLISHED_EVERY = 50


def main(equation: str, seed: int, batches: int, held_out: int, result: Path, watched: bool = False) -> None:
    """Train with all samples of the stream, each weighted by its simulation's weight, and pass the losses back."""
    stream = mpidata.MPIStreamDataset(batch_size=BATCH)
    training = Training(EQUATIONS[equation], seed, batches)
    # The job has more parameters, in a different order.
    columns = [stream.parameter_names.index(name) for name in EQUATIONS[equation].space]
    watch = Watch(EQUATIONS[equation], batches) if watched else None
    published = json.loads(os.environ["EXPERIMENT_ARM"])["sampler"] in PUBLISHED
    begun = time.thread_time()
    for batch in stream:
        parameters = batch["parameters"][:, columns]
        losses = training.step(parameters, batch["u"], batch["weight"])
        stream.losses(batch, losses)
        if published and training.steps % _PUBLISHED_EVERY == 0:
            mpidata.publish(dict(training.model.state_dict()))
        if watch:
            watch.batch(batch["simulation"], parameters)
    found = {"training_s": round(time.thread_time() - begun, 2)} | training.result(held_out)
    result.write_text(json.dumps(found | (watch.result(training) if watch else {})))


if __name__ == "__main__":
    _, equation, seed, batches, held_out, result, *watched = sys.argv
    main(equation, int(seed), int(batches), int(held_out), Path(result), bool(watched))
