"""Trainer: checks each element of fields of all dtypes in batches, single validation samples and statistics."""

import numpy as np
import torch
from dtype_values import arrives

import mpidata
from mpidata import Normalizer


def check(name: str, dtype: str, found: torch.Tensor, step: int) -> None:
    assert found.dtype == getattr(torch, dtype), (name, found.dtype)
    array = found.float().numpy() if dtype == "bfloat16" else found.numpy()
    np.testing.assert_array_equal(array, arrives(name, step), err_msg=f"{name}, step {step}")
    if dtype == "bool":
        assert found.view(torch.uint8).max() <= 1


stream = mpidata.MPIStreamDataset(batch_size=2)
normalizer = Normalizer(stream, after=1)
for sample in stream.validation():
    for name, field in stream.fields.items():
        check(name, field.dtype, sample[name], int(sample["step"]))
seen = 0
for batch in stream:
    scaled = normalizer(batch)
    for name, field in stream.fields.items():
        kept = name not in stream.statistics()
        assert kept == (field.dtype.startswith(("bool", "complex")) or name == "int32")
        assert (scaled[name] is batch[name]) == kept, name
        for row, step in enumerate(batch["step"].tolist()):
            check(name, field.dtype, batch[name][row], step)
            seen += 1
print("=> checked", seen, flush=True)
