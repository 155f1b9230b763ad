"""Compares packed batches, and single samples, of random fields with what was put."""

from typing import Any

import numpy as np
from contents import SPEC, given, lengths, varying, whole

from mpidata.tensors import array_of


def steps_of(batch: dict[str, Any], window: int) -> list[tuple[int, int]]:
    simulations, steps = batch["simulation"].reshape(-1), batch["step"].reshape(-1)
    assert len(steps) == len(simulations) * window
    return [(int(simulations[i // window]), int(step)) for i, step in enumerate(steps)]


def compare(batch: dict[str, Any], window: int) -> None:
    """Each array of a packed batch, or of a single sample, with those of its steps joined."""
    steps = steps_of(batch, window)
    of = {name: [lengths(*step)[name] for step in steps] for name in SPEC["lengths"]}
    assert batch["time"].reshape(-1).tolist() == [0.5 * step[1] + sum(lengths(*step).values()) for step in steps]
    for name, values in of.items():
        assert batch[name].reshape(-1).tolist() == values, (name, batch[name], values)
        if f"{name}_offsets" in batch:
            assert batch[f"{name}_offsets"].tolist() == [0, *np.cumsum(values).tolist()]
    for name, entry in SPEC["fields"].items():
        arrays = [whole(name, *step) for step in steps]
        if entry.get("index"):
            before = np.cumsum([0, *of[entry["index"]]])[:-1]
            arrays = [array + array.dtype.type(by) for array, by in zip(arrays, before, strict=True)]
        wanted = np.concatenate(arrays, varying(name)) if varying(name) >= 0 else np.stack(arrays)
        if entry.get("optional"):
            assert batch[f"{name}_given"].reshape(-1).tolist() == [given(name, *step) for step in steps]
        came = array_of(batch[name])
        assert str(batch[name].dtype) == f"torch.{entry['dtype']}"
        assert np.array_equal(came if varying(name) >= 0 else came.reshape(wanted.shape), wanted), (name, steps)
