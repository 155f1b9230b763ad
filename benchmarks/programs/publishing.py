"""Trainer: steps of a small network, in windows of EVERY seconds; in every other one it publishes SIZE bytes first.

SIZE EVERY PAIRS FOLDER. Writes the steps of each pair's window with a version, to those of the one without.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

import mpidata

size, every, pairs, folder = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
torch.set_num_threads(1)
stream = mpidata.MPIStreamDataset(batch_size=1)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
weights = torch.zeros(size // 4)
inputs = torch.randn(64, 256)


def window(publishes: bool) -> float:
    """Steps in a second of one window."""
    begin = time.perf_counter()
    if publishes:
        weights.add_(1.0)
        mpidata.publish({"weights": weights})
    steps = 0
    while (now := time.perf_counter()) - begin < every:
        loss = nn.functional.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    return steps / (now - begin)


for _ in range(3):
    mpidata.publish({"weights": weights})  # memory is taken
window(False)
ratios, rates = [], []
for number in range(pairs):
    order = (True, False) if number % 2 else (False, True)
    found = {publishes: window(publishes) for publishes in order}
    ratios.append(found[True] / found[False])
    rates.append(found[False])
(folder / "trainer.json").write_text(json.dumps({"ratios": ratios, "steps_per_s": sum(rates) / len(rates)}))
(folder / "result.json").write_text(json.dumps({"samples": pairs, "seconds": 2 * pairs * every}))
(folder / "over").touch()
for _ in stream:
    pass
