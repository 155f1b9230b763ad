"""Trainer of the kill campaign: checks every element of every sample of sized.c, and counts each sample's draws.

Arguments: KILLS, SAMPLES (at least this trainer's share), BATCH (0: single samples). The trainer starts each of the
KILLS+1 parts of its share only once enough kills were made; the file `kills` has a byte per kill.
"""

import json
import os
import pathlib
import sys
import time

import torch

import mpidata

kills, samples, batch_size = (int(argument) for argument in sys.argv[1:])


class Census:
    """The number of draws of each sample, saved in checkpoints."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    def state_dict(self) -> dict:
        return {"counted": dict(self.counted)}

    def load_state_dict(self, state: dict) -> None:
        self.counted = dict(state["counted"])

    def add(self, sample: dict[str, torch.Tensor]) -> None:
        simulation, steps = int(sample["simulation"]), sample["step"].reshape(-1)
        step, u = int(steps[0]), sample["u"].reshape(len(steps), -1)
        assert torch.equal(u, PATTERN + (4096 * simulation + 64 * steps)[:, None]), (simulation, steps)
        assert torch.equal(sample["mark"].reshape(-1), 64 * simulation + steps)
        assert torch.equal(sample["time"].reshape(-1), 0.5 * steps)
        key = f"{simulation}/{step}"
        self.counted[key] = self.counted.get(key, 0) + 1


def wait_for_kill(drawn: int) -> None:
    while (made := pathlib.Path("kills").stat().st_size) < kills and drawn >= samples * (made + 1) // (kills + 1):
        time.sleep(0.01)


stream = mpidata.MPIStreamDataset(batch_size=batch_size or None)
census = Census()
stream.register(census=census)
PATTERN = (torch.arange(stream.fields["u"].shape[0]) % 61).float()
for batch in stream:
    for i in range(batch_size or 1):
        census.add({name: tensor[i] for name, tensor in batch.items()} if batch_size else batch)
    wait_for_kill(len(census.counted))
pathlib.Path(f"census-{os.environ['RANK']}.json").write_text(json.dumps(census.counted))
