"""Trainer: publishes before the first batch and after every n-th; u of a sample is a version that a solver has read.

Options, in JSON: elements; every: batches from one version to the next; publishes: versions in a row; pause_s; kept:
whether the number of versions is registered; dies: the trainer that kills itself, and at which batch; checkpoint:
whether it waits for a checkpoint first; torch: whether to add tensors of two further dtypes.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from numpy_stream import stream
from published.values import arrays

import mpidata
from mpidata.trainer.join import join

DEFAULTS = {
    "elements": 100,
    "every": 4,
    "publishes": 1,
    "pause_s": 0.0,
    "kept": False,
    "dies": None,
    "checkpoint": True,
    "torch": False,
}
options = DEFAULTS | json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")


class Count:
    """Number of versions."""

    version = 0

    def state_dict(self):
        return {"version": self.version}

    def load_state_dict(self, state):
        self.version = state["version"]


def with_tensors(found):
    if not options["torch"]:
        return found
    import torch

    odd = torch.tensor(bool(count.version % 2))
    return found | {"odd": odd, "half": torch.full((2,), count.version % 8 + 0.5, dtype=torch.bfloat16)}


def publish():
    for _ in range(options["publishes"]):
        count.version += 1
        version = mpidata.publish(with_tensors(arrays(count.version, options["elements"])))
        assert version == count.version, (version, count.version)


def die():
    run = Path(os.environ["MPIDATA_RUN"])
    while options["checkpoint"] and not [path for path in run.glob("checkpoints/*") if path.suffix != ".new"]:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


count = Count()
if options["kept"]:
    mpidata.register(count=count)
batches = stream(1)
index = join().communicator.Get_rank()
print(f"=> begins with {count.version}", flush=True)
again = bool(count.version)
if not again:
    publish()
seen = set()
for number, batch in enumerate(batches):
    if options["dies"] == [index, number] and not again:
        die()
    seen.add(int(batch["u"].flat[0]))
    if number % options["every"] == options["every"] - 1:
        publish()
    time.sleep(options["pause_s"])
assert max(seen) <= count.version, (seen, count.version)
print(f"=> {len(seen)} versions were used, the last one {max(seen)} of {count.version}", flush=True)
