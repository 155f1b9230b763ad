"""Trainer: counts every sample of the heat example in a state that checkpoints save, and trains a little.

Argument: seconds to sleep after each batch.
"""

import hashlib
import json
import os
import pathlib
import sys
import time

import torch

import mpidata


class Census:
    """The samples used, by simulation and step, and the losses so far."""

    def __init__(self) -> None:
        self.counted: dict[str, list[str]] = {}
        self.losses: list[float] = []

    def state_dict(self) -> dict:
        return {"counted": dict(self.counted), "losses": list(self.losses)}

    def load_state_dict(self, state: dict) -> None:
        self.counted = {key: list(prints) for key, prints in state["counted"].items()}
        self.losses = list(state["losses"])


torch.manual_seed(0)
torch.set_num_threads(1)
model, census = torch.nn.Linear(6, 1), Census()
stream = mpidata.MPIStreamDataset(batch_size=5)
stream.register(model=model, census=census)
assert len(census.losses) == stream.resumed, (len(census.losses), stream.resumed)
trainer = os.environ["RANK"]
for batch in stream:
    for i in range(5):
        key = f"{int(batch['simulation'][i])}/{int(batch['step'][i])}"
        digest = hashlib.sha256(batch["temperature"][i].numpy().tobytes()).hexdigest()
        census.counted.setdefault(key, []).append(digest)
    loss = (
        (model(batch["parameters"].float() / 500) - batch["temperature"].mean(dim=(1, 2))[:, None] / 500)
        .square()
        .mean()
    )
    model.zero_grad()
    loss.backward()
    with torch.no_grad():  # no optimizer: the first one of a process loads torch's compiler, which takes 2 s
        for weights in model.parameters():
            weights -= 1e-3 * weights.grad
    census.losses.append(float(loss.detach()))
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
path = pathlib.Path(f"census-{trainer}.json")
path.write_text(json.dumps(census.counted))
pathlib.Path(f"losses-{trainer}.json").write_text(json.dumps(census.losses))
