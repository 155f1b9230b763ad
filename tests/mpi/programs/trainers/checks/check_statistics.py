"""Trainer: writes the statistics of the fields after each batch and at the end.

Arguments: samples in a batch, batch after which the normalizer is frozen, seconds of work for each batch.
"""

import hashlib
import json
import os
import sys
import time

import torch

import mpidata

batch_size, after, work = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
stream = mpidata.MPIStreamDataset(batch_size=batch_size)
normalizer = mpidata.Normalizer(stream, after=after)
linear = torch.nn.Linear(1, 1)
stream.register(normalizer=normalizer, linear=linear)
first = stream.resumed
log = open(f"statistics-{first}-{os.environ['RANK']}", "w", buffering=1)
kept = bool(normalizer.frozen)


def numbers() -> dict[str, dict[str, object]]:
    return {name: {key: value.tolist() for key, value in vars(of).items()} for name, of in stream.statistics().items()}


for number, batch in enumerate(stream, start=first + 1):
    scaled = normalizer(batch)
    assert scaled["plane"].dtype == torch.float32 and scaled["whole"].dtype == torch.float32
    assert scaled["step"] is batch["step"]
    assert torch.allclose(normalizer.denormalize("plane", scaled["plane"]), batch["plane"], rtol=1e-5, atol=1e-2)
    assert bool(normalizer.frozen) == (number >= after or kept), number
    buffers = {name: tensor.tolist() for name, tensor in normalizer.state_dict().items()}
    told = hashlib.sha256(json.dumps([numbers(), buffers]).encode()).hexdigest()
    log.write(f"{number} {told}\n")
    time.sleep(work)
result = {
    "end": numbers(),
    "ranges": stream.parameter_ranges,
    "whole": {key: value.tolist() for key, value in vars(stream.statistics(axes={"plane": None})["plane"]).items()},
    "frozen": normalizer.state_dict()["mean_plane"].tolist(),
}
with open(f"result-{os.environ['RANK']}.json", "w") as file:
    json.dump(result, file)
