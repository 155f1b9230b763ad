"""Trainer: passes the square of alpha as the loss, and writes the weights of simulations."""

import json

import mpidata

stream = mpidata.MPIStreamDataset(batch_size=4)
assert stream.parameter_names == ("alpha",) and list(stream.parameter_ranges) == ["alpha"]
seen = {}
for batch in stream:
    count, alpha = len(batch["simulation"]), batch["parameters"][:, 0]
    assert batch["parameters"].shape == (count, 1) and batch["weight"].shape == (count,)
    assert str(batch["weight"].dtype) == "torch.float32"
    assert (batch["u"].reshape(count, -1)[:, 0] == (alpha + batch["step"].reshape(count, -1)[:, 0]).float()).all()
    seen |= dict(zip(batch["simulation"].tolist(), batch["weight"].tolist(), strict=True))
    stream.losses(batch, alpha.square())
for sample in stream.validation():
    assert sample["weight"].item() == 1 and sample["parameters"].shape == (1,)
with open("seen.json", "w") as file:
    json.dump(seen, file)
