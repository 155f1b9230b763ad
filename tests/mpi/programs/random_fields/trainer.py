"""Compares each sample that comes with what was put, and notes (simulation, step) of all: seen-<trainer>.json.

With `dies` in spec.json trainer 0 asks for a checkpoint after 3 batches, and dies when it is there, in the first start.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from contents import SPEC, given, lengths, varying, whole

import mpidata

batch_size, window, stride = (int(argument) for argument in sys.argv[1:])
rank = int(os.environ["RANK"])
PAD = -0.75
drawn: list[list[int]] = []


class Seen:
    def state_dict(self) -> dict[str, object]:
        return {"drawn": list(drawn)}

    def load_state_dict(self, state: dict[str, list[list[int]]]) -> None:
        drawn[:] = state["drawn"]


def steps_of(batch: dict[str, object]) -> list[tuple[int, int]]:
    simulations, steps = batch["simulation"].reshape(-1), batch["step"].reshape(-1)
    assert len(steps) == len(simulations) * window
    return [(int(simulations[i // window]), int(step)) for i, step in enumerate(steps)]


def compare(batch: dict[str, object], ragged: str = "packed") -> None:
    """Each array of a batch, or of a single sample, with those of its steps."""
    steps = steps_of(batch)
    of = {name: [lengths(*step)[name] for step in steps] for name in SPEC["lengths"]}
    assert batch["time"].reshape(-1).tolist() == [0.5 * step[1] + sum(lengths(*step).values()) for step in steps]
    for name, values in of.items():
        assert batch[name].reshape(-1).tolist() == values, (name, batch[name], values)
        assert (f"{name}_offsets" in batch) == (ragged == "packed" and batch["step"].ndim > 0)
        if f"{name}_offsets" in batch:
            assert batch[f"{name}_offsets"].tolist() == [0, *np.cumsum(values).tolist()]
    for name, entry in SPEC["fields"].items():
        arrays = [whole(name, *step) for step in steps]
        if entry.get("optional"):
            assert batch[f"{name}_given"].reshape(-1).tolist() == [given(name, *step) for step in steps]
        same(name, batch[name], arrays, of, ragged if varying(name) >= 0 else "alike")


def same(name: str, came: torch.Tensor, arrays: list[np.ndarray], of: dict[str, list[int]], ragged: str) -> None:
    """Compare a field of a batch with those of its steps, whose lengths are `of`."""
    entry = SPEC["fields"][name]
    assert came.dtype == getattr(torch, entry["dtype"])
    if ragged == "nested":
        for one, array in zip(came.unbind(), arrays, strict=True):
            assert np.array_equal(one.numpy(), array), name
        return
    if ragged == "packed":
        if entry.get("index"):
            before = np.cumsum([0, *of[entry["index"]]])[:-1]
            arrays = [array + array.dtype.type(by) for array, by in zip(arrays, before, strict=True)]
        assert np.array_equal(came.numpy(), np.concatenate(arrays, varying(name))), name
        return
    wanted = came.numpy().reshape(len(arrays), *came.shape[came.ndim - arrays[0].ndim :])
    for place, array in zip(wanted, arrays, strict=True):
        own = np.zeros(place.shape, bool)
        own[tuple(map(slice, array.shape))] = True
        assert np.array_equal(place[own].reshape(array.shape), array), name
        assert (place[~own] == (-1 if entry.get("index") else PAD if array.dtype.kind == "f" else 0)).all(), name
    if ragged == "padded":
        assert wanted.shape[1 + varying(name)] == max(of[entry["shape"][varying(name)]]), name


kind = SPEC["ragged"]
stream = mpidata.MPIStreamDataset(batch_size=batch_size, ragged=kind, pad=PAD if kind == "padded" else None)
mpidata.register(seen=Seen())
validation = stream.validation()
for i in range(len(validation)):
    compare(validation[i])
held = sorted((int(sample["simulation"]), int(sample["step"].reshape(-1)[0])) for sample in validation)
checkpoints = Path(os.environ["MPIDATA_RUN"], "checkpoints")
for number, batch in enumerate(stream, start=1):
    compare(batch, kind)
    time.sleep(SPEC.get("work_s", 0.0))
    drawn += [list(step) for step in steps_of(batch)[::window]]
    if SPEC.get("dies") and not stream.resumed:
        if number == 3:
            stream.checkpoint()
        if rank == 0 and any(checkpoints.glob("[0-9]*[0-9]")):
            os._exit(3)
        time.sleep(0.05)  # of work
with open(f"seen-{rank}.json", "w") as file:
    json.dump({"drawn": drawn, "validation": held, "resumed": stream.resumed}, file)
