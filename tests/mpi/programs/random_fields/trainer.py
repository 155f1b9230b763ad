"""Compares each sample that comes with what was put, and notes (simulation, step) of all: seen-<trainer>.json.

With `dies` in spec.json trainer 0 asks for a checkpoint after 3 batches, and dies when it is there, in the first start.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from contents import SPEC, given, lengths, once, varying, whole

import mpidata

batch_size, window, stride = (int(argument) for argument in sys.argv[1:])
rank = int(os.environ["RANK"])
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


def compare(batch: dict[str, object]) -> None:
    """Each array of a packed batch, or of a single sample, with those of its steps joined."""
    steps = steps_of(batch)
    of = {name: [lengths(*step)[name] for step in steps] for name in SPEC["lengths"]}
    assert batch["time"].reshape(-1).tolist() == [0.5 * step[1] + sum(lengths(*step).values()) for step in steps]
    for name, values in of.items():
        assert batch[name].reshape(-1).tolist() == values, (name, batch[name], values)
        if f"{name}_offsets" in batch:
            assert batch[f"{name}_offsets"].tolist() == [0, *np.cumsum(values).tolist()]
    for name, entry in SPEC["fields"].items():
        if once(name) and not SPEC["gathers"]:
            compare_constants(batch, name, steps)
            continue
        arrays = [whole(name, *step) for step in steps]
        if entry.get("index"):
            before = np.cumsum([0, *of[entry["index"]]])[:-1]
            arrays = [array + array.dtype.type(by) for array, by in zip(arrays, before, strict=True)]
        wanted = np.concatenate(arrays, varying(name)) if varying(name) >= 0 else np.stack(arrays)
        if entry.get("optional"):
            assert batch[f"{name}_given"].reshape(-1).tolist() == [given(name, *step) for step in steps]
        came = batch[name].numpy()
        assert str(came.dtype) == entry["dtype"]
        assert np.array_equal(came if varying(name) >= 0 else came.reshape(wanted.shape), wanted), (name, steps)


def compare_constants(batch: dict[str, object], name: str, steps: list[tuple[int, int]]) -> None:
    """Of a batch those that the stream has, of a single sample its own."""
    assert (name in batch) == (batch["simulation"].ndim == 0)
    for simulation, step in steps:
        held = batch if name in batch else stream.constants(simulation)
        wanted = whole(name, simulation, step)
        if SPEC["fields"][name].get("optional"):
            if f"{name}_given" in held and held is not batch:
                assert bool(held[f"{name}_given"]) == given(name, simulation, step)
            if not given(name, simulation, step):
                assert not held[name].any()
                continue
        assert np.array_equal(held[name].numpy(), wanted), (name, simulation)


stream = mpidata.MPIStreamDataset(batch_size=batch_size, constants="batch" if SPEC["gathers"] else "apart")
mpidata.register(seen=Seen())
validation = stream.validation()
for i in range(len(validation)):
    compare(validation[i])
held = sorted((int(sample["simulation"]), int(sample["step"].reshape(-1)[0])) for sample in validation)
checkpoints = Path(os.environ["MPIDATA_RUN"], "checkpoints")
for number, batch in enumerate(stream, start=1):
    compare(batch)
    drawn += [list(step) for step in steps_of(batch)[::window]]
    if SPEC.get("dies") and not stream.resumed:
        if number == 3:
            stream.checkpoint()
        if rank == 0 and any(checkpoints.glob("[0-9]*[0-9]")):
            os._exit(3)
        time.sleep(0.05)  # of work
with open(f"seen-{rank}.json", "w") as file:
    json.dump({"drawn": drawn, "validation": held, "resumed": stream.resumed}, file)
