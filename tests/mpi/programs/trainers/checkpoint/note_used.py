"""Trainer: records the samples that it used, also in checkpoints. Argument: the batch at which it asks for one.

The first start ends once the checkpoint is written, by SIGKILL if the next argument is "killed"; the resumed start
ends with the job.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

import mpidata


class Used:
    def __init__(self):
        self.samples = []

    def state_dict(self):
        return {"samples": list(self.samples)}

    def load_state_dict(self, state):
        self.samples = state["samples"]


at, size = int(sys.argv[1]), int(os.environ.get("BATCH", "4"))
model, used = torch.nn.Linear(2, 2), Used()
stream = mpidata.MPIStreamDataset(batch_size=size)
stream.register(model=model, used=used)
print("resumed", stream.resumed, len(used.samples))
done = Path(os.environ["MPIDATA_RUN"]) / "checkpoints" / "000001"
for batch in stream:
    expected = batch["parameters"][:, 0] + batch["step"]
    assert torch.equal(batch["u"], expected.float().reshape(size, 1, 1).expand(size, 4, 6))
    used.samples += list(zip(batch["simulation"].tolist(), batch["step"].tolist(), strict=True))
    model.zero_grad()
    model(torch.ones(2)).sum().backward()
    with torch.no_grad():  # no optimizer: the first one of a process loads torch's compiler, which takes 2 s
        for weights in model.parameters():
            weights -= 1e-3 * weights.grad
    if stream.state_dict()["batch"] == at:
        stream.checkpoint()
    time.sleep(0.01 if stream.resumed else 0.1)
    if not stream.resumed and stream.state_dict()["batch"] == at + 7:  # the checkpoint is of an earlier batch
        deadline = time.monotonic() + 30
        while not done.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    if not stream.resumed and done.exists():
        if "killed" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        break
with open(f"used-{os.environ['RANK']}.json", "w") as file:
    json.dump(used.samples, file)
