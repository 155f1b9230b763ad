"""Training script of the online arms: online.py SEED MARKS HELD_OUT RESULT; SEED -1 takes samples without training."""

import json
import sys
import time
from pathlib import Path

from surrogate import BATCH, Training

import mpidata


def main(seed: int, marks: int, held_out: int, result: Path) -> None:
    """Train with all samples of the stream."""
    stream = mpidata.MPIStreamDataset(batch_size=BATCH)
    begun = time.perf_counter()
    training = Training(seed, marks)
    for batch in stream:
        if seed >= 0:
            training.step(batch["parameters"][:, :6], batch["time"], batch["temperature"])
    seconds = time.perf_counter() - begun
    found = training.result(held_out) if seed >= 0 else {"seconds": seconds}
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    _, seed, marks, held_out, result = sys.argv
    main(int(seed), int(marks), int(held_out), Path(result))
