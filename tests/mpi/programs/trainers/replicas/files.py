"""Records each batch of a DataLoader and of a FileDataset in book-<rank>.jsonl: dataset, epoch, number, digest, rows.

Argument, in JSON: `epochs`; `kill`: the rank to kill in the first start, once a checkpoint is complete.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch

import mpidata

options = json.loads(sys.argv[1])
run, rank = Path(os.environ["MPIDATA_RUN"]), int(os.environ["RANK"])
place = mpidata.replica()
again = (run / f"book-{rank}.jsonl").exists()
book = (run / f"book-{rank}.jsonl").open("a")


class Noisy(torch.utils.data.Dataset):
    """Augmented by all random generators that scripts use; some parts are large, some small."""

    def __len__(self):
        return 61

    def __getitem__(self, index):
        return {"row": index, "image": torch.rand(3000) + index, "noise": np.random.rand(4), "chance": random.random()}


class Counter:
    batches = 0

    def state_dict(self):
        return {"batches": self.batches, "rank": rank}

    def load_state_dict(self, state):
        assert state["rank"] == rank
        self.batches = state["batches"]


def digest(tensors):
    found = hashlib.sha256()
    for name, tensor in tensors.items():
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode() + tensor.contiguous().numpy().tobytes())
    return found.hexdigest()


def note(**line):
    print(json.dumps(line), file=book, flush=True)


def pass_over(name, dataset, epoch):
    for number, batch in enumerate(dataset, dataset.resumed[1] if epoch == dataset.resumed[0] else 0):
        note(of=name, epoch=epoch, batch=number, digest=digest(batch), rows=batch["row"].tolist())
        for tensor in batch.values():
            tensor.zero_()  # a batch belongs to the script
        counter.batches += 1
        if rank == options.get("kill") and not again and any((run / "checkpoints").glob("[0-9]*[0-9]")):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(options.get("pause_s", 0.0))


counter = Counter()
mpidata.register(counter=counter)
note(resumed=counter.batches, at=counter.batches)
loader = mpidata.DataLoader(Noisy(), batch_size=3, shuffle=True, share=True)
files = mpidata.FileDataset("parts/*.npz", batch_size=4)
for epoch in range(min(loader.resumed[0], files.resumed[0]), options["epochs"]):
    if loader.resumed[0] <= epoch:
        pass_over("loader", loader, epoch)
    if files.resumed[0] <= epoch:
        pass_over("files", files, epoch)
note(end=counter.batches, length=[len(loader), len(files)], states=[loader.state_dict(), files.state_dict()["batches"]])
