"""Trainer that acts on the simulations after each batch, and checks all samples against what solvers put.

Argument: JSON with the options of acting.py, and batch, pause_s. Writes the samples drawn to drawn-TRAINER.json.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from loop.acting import Acting
from numpy_stream import stream

from mpidata.trainer.cancel.stream_methods import cancel
from mpidata.trainer.join import join

options = json.loads(sys.argv[1])
batches, trainer = stream(options["batch"]), join()
index = 0 if trainer.communicator is None else trainer.communicator.Get_rank()
acting = Acting(options, index, lambda ids: cancel(trainer, ids))
drawn: list[str] = []


def check_ragged(batch: dict[str, np.ndarray], numbers: np.ndarray) -> None:
    """Check `p`, which holds the rows of all ranks in each step."""
    counts = sum((batch["simulation"][:, None] + steps + rank) % 4 for rank in range(options["ranks"]))
    assert (batch["nodes"].reshape(counts.shape) == counts).all(), (batch["nodes"], counts)
    rows = np.concatenate([np.arange(count) for count in counts.ravel()])
    assert (batch["p"] == np.stack([numbers.ravel().repeat(counts.ravel()), rows], axis=1)).all(), batch


for number, batch in enumerate(batches):
    steps = batch["step"].reshape(len(batch["simulation"]), -1)
    drawn += [f"{simulation}/{of[0]}" for simulation, of in zip(batch["simulation"].tolist(), steps, strict=True)]
    alphas = batch["parameters"][:, :1]
    values = batch["u"].reshape(*steps.shape, -1)
    assert (values == (alphas + steps)[..., None].astype(np.float32)).all(), (batch["simulation"], steps)
    if "rows" in batch:
        rows = batch["rows"].reshape(*steps.shape, -1)
        wanted = 64 * batch["simulation"][:, None] + steps
        assert (rows == wanted[..., None] + np.arange(8)).all(), (batch["simulation"], steps, rows)
    if "p" in batch:
        check_ragged(batch, 64 * batch["simulation"][:, None] + steps)
    trainer.losses.take(batch, batch["parameters"][:, 0])
    acting.act(number, batch["simulation"].tolist())
    time.sleep(options["pause_s"])
Path(f"drawn-{index}.json").write_text(json.dumps(drawn))
