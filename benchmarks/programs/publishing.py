"""Trainer: trains a small network, and publishes SIZE bytes every EVERY seconds, VERSIONS times in all.

Arguments: SIZE EVERY VERSIONS FOLDER. A version slows training for some tenths of a second. The steps in the two
seconds from the call are compared with those in the two seconds before, because the machine's speed changes within ten.
Writes for each version the ratio of the steps in EVERY seconds with it to those without it.
"""

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

import mpidata

size, every, versions, folder = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
torch.set_num_threads(1)
stream = mpidata.MPIStreamDataset(batch_size=1)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
weights = torch.zeros(size // 4)
inputs = torch.randn(64, 256)
near = min(2.0, every / 4)  # seconds before the call, and from the call on


def steps_per_s(seconds: float, publishes: bool = False) -> float:
    """Train for `seconds`; return the steps per second."""
    begin = time.perf_counter()
    if publishes:
        mpidata.publish({"weights": weights})
    steps = 0
    while (now := time.perf_counter()) - begin < seconds:
        loss = nn.functional.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    return steps / (now - begin)


for _ in range(3):
    mpidata.publish({"weights": weights})  # allocates the memory
ratios, rates = [], []
for _ in range(versions):
    steps_per_s(every - 2 * near)
    weights.add_(1.0)
    without = steps_per_s(near)
    fall = 1 - steps_per_s(near, publishes=True) / without
    ratios.append(1 - fall * near / every)
    rates.append(without)
(folder / "trainer.json").write_text(json.dumps({"ratios": ratios, "steps_per_s": sum(rates) / len(rates)}))
(folder / "result.json").write_text(json.dumps({"samples": versions, "seconds": versions * every}))
(folder / "over").touch()
for _ in stream:
    pass
