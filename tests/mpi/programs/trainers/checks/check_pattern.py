"""Trainer: checks every element of every sample of pattern.c, and writes which samples came, in order."""

import json
import os
import sys

import torch

import mpidata


def check(sample: dict[str, torch.Tensor]) -> None:
    simulation, step = int(sample["simulation"]), int(sample["step"])
    assert float(sample["time"]) == 0.25 * step
    for name, field in stream.fields.items():
        shape = field.shape
        index = torch.arange(int(torch.tensor(shape).prod()) if shape else 1).reshape(shape)
        expected = (4096 * simulation + 64 * step + index % 61).to(sample[name].dtype)
        assert sample[name].shape == shape, name
        assert torch.equal(sample[name], expected), (name, simulation, step)
    assert torch.equal(sample["parameters"], PARAMETERS[simulation]), (sample["parameters"], simulation)


with open(os.path.join(os.environ["MPIDATA_RUN"], "parameters.csv")) as file:
    PARAMETERS = [torch.tensor([float(v) for v in line.split(",")[1:]], dtype=torch.float64) for line in list(file)[1:]]

batch_size = int(sys.argv[1])
stream = mpidata.MPIStreamDataset(batch_size=batch_size or None)
validation = stream.validation()
for i in range(len(validation)):
    check(validation[i])
seen, batches = [], 0
for batch in stream:
    batches += 1
    samples = (
        [{name: tensor[i] for name, tensor in batch.items()} for i in range(batch_size)] if batch_size else [batch]
    )
    for sample in samples:
        check(sample)
        seen.append((int(sample["simulation"]), int(sample["step"])))
assert list(stream) == []
held = [(int(v["simulation"]), int(v["step"])) for v in (validation[i] for i in range(len(validation)))]
with open(f"seen-{os.environ['RANK']}.json", "w") as file:
    json.dump({"seen": seen, "validation": held, "batches": batches}, file)
