"""Trainer that fails once, within an epoch. Arguments: the framework, and a `stream`, a `loader` or `files`."""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

import mpidata

framework, given = sys.argv[1:]
ROWS, SIZE, EPOCHS, WRITTEN_AT, FAILS_AT = 120, 4, 2, 6, 12
rank = os.environ["RANK"]


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return torch.tensor(index)


class Used:
    """Registered state: the numbers used before the checkpoint and after the resume."""

    def __init__(self):
        self.numbers, self.batches = [], 0

    def state_dict(self):
        return {"numbers": list(self.numbers)}

    def load_state_dict(self, state):
        self.numbers = list(state["numbers"])

    def add(self, batch):
        if isinstance(batch, dict):
            batch = batch["data"] if "data" in batch else 1000 * batch["simulation"] + batch["step"]
        self.numbers += batch.tolist()
        self.batches += 1
        if not Path("resumed").exists():
            first = self.batches <= WRITTEN_AT  # a checkpoint under way delays the next one
            tries = self.batches - (0 if first else WRITTEN_AT)
            there = has_checkpoint(0 if first else 1, within_s=0.1 * 2**tries)  # it begins between two batches
            assert there or self.batches not in (WRITTEN_AT, FAILS_AT)
            if self.batches == FAILS_AT:
                raise SystemExit(3)


def has_checkpoint(batch, within_s):
    """Wait for a checkpoint of this batch or a later one; return False if none is written in time."""
    events = Path(os.environ["MPIDATA_RUN"], "events.jsonl")
    until = time.monotonic() + within_s
    while not any(event["event"] == "checkpoint" and event["batch"] >= batch for event in lines_of(events)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def make():
    if given == "stream":
        return mpidata.MPIStreamDataset(batch_size=SIZE)
    if given == "loader":
        return mpidata.DataLoader(Rows(), SIZE, shuffle=True, share=True)
    return mpidata.FileDataset("rows.npy", SIZE)


mpidata.init_process_group("gloo")
if rank == "0" and not Path("rows.npy").exists():
    np.save("rows.npy", np.arange(ROWS))
torch.distributed.barrier()
used, data = Used(), make()
left = 1 if given == "stream" else EPOCHS - data.resumed[0]
if framework == "stateful":
    from torchdata.stateful_dataloader import StatefulDataLoader

    loader = StatefulDataLoader(data, batch_size=None)
    mpidata.register(used=used, **({"loader": loader} if given == "stream" else {}))
    for _ in range(left):
        for batch in loader:
            used.add(batch)
elif framework == "ignite":
    from ignite.engine import Engine

    engine = Engine(lambda engine, batch: used.add(batch))
    # Without the engine's own state, Ignite would count a whole epoch from the resumed position.
    mpidata.register(used=used, **({"engine": engine} if given != "stream" else {}))
    engine.run(data, max_epochs=1 if given == "stream" else EPOCHS)
else:
    from accelerate import Accelerator

    prepared = Accelerator(cpu=True).prepare(data)
    mpidata.register(used=used)
    for _ in range(left):
        for batch in prepared:
            used.add(batch)
with open(f"used-{rank}.json", "w") as file:
    json.dump({"used": used.numbers, "resumed": data.resumed if given == "stream" else sum(data.resumed)}, file)
