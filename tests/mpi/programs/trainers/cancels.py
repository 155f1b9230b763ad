"""Trainer that cancels simulations, draws the rest, and prints in JSON the samples drawn and the ids accepted.

Arguments: `drawn N`: cancel each simulation after N of its samples; `blocked`: cancel all before the first draw, once
the buffer is full; `first IDS...`: cancel these before the first draw. Only the first trainer cancels.
STOP_AT in the environment: fail once, after that many samples.
"""

import ctypes
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from numpy_stream import stream

from mpidata.native import structures
from mpidata.trainer.cancel.stream_methods import cancel
from mpidata.trainer.join import join


def wait_until_nothing_comes():
    figures, received, since = structures.Statistics(), -1, time.monotonic()
    while time.monotonic() - since < 0.5 or received < 1:
        join().library.mpidata_trainer_statistics(ctypes.byref(figures))
        if figures.received != received:
            received, since = figures.received, time.monotonic()
        time.sleep(0.01)


how, values = sys.argv[1], [int(word) for word in sys.argv[2:]]
samples, trainer = stream(), join()
simulations = range(trainer.plan.simulations + trainer.plan.validation + 2)
first, stop_at, marker = trainer.checkpoints.restored.batch, int(os.environ.get("STOP_AT", 0)), Path("stopped")
index = 0 if trainer.communicator is None else trainer.communicator.Get_rank()
taken, again, drawn = [], [], []
of_each = Counter()
if how == "blocked":
    wait_until_nothing_comes()
if index == 0 and how != "drawn":
    ids = list(values or simulations)
    taken += cancel(trainer, [*ids, *ids])
    again += cancel(trainer, ids)
for sample in samples:
    drawn.append((int(sample["simulation"]), int(sample["step"].ravel()[0])))
    of = drawn[-1][0]
    of_each[of] += 1
    if how == "drawn" and index == 0 and of_each[of] == values[0]:
        taken += cancel(trainer, sample["simulation"])
        again += cancel(trainer, [of])
    if stop_at and len(drawn) == stop_at and not marker.exists():
        marker.touch()
        sys.exit("as asked")
print("=>", json.dumps({"drawn": drawn, "taken": taken, "again": again, "first": first}))
