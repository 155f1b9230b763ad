"""Compares each sample that comes with what was put, and notes (simulation, step) of all: seen-<trainer>.json."""

import json
import os
import sys

from comparing import compare, steps_of

import mpidata

batch_size, window, stride = (int(argument) for argument in sys.argv[1:])
rank = int(os.environ["RANK"])
drawn: list[list[int]] = []


class Seen:
    def state_dict(self) -> dict[str, object]:
        return {"drawn": list(drawn)}

    def load_state_dict(self, state: dict[str, list[list[int]]]) -> None:
        drawn[:] = state["drawn"]


stream = mpidata.MPIStreamDataset(batch_size=batch_size)
mpidata.register(seen=Seen())
validation = stream.validation()
for i in range(len(validation)):
    compare(validation[i], window)
held = sorted((int(sample["simulation"]), int(sample["step"].reshape(-1)[0])) for sample in validation)
for batch in stream:
    compare(batch, window)
    drawn += [list(step) for step in steps_of(batch, window)[::window]]
with open(f"seen-{rank}.json", "w") as file:
    json.dump({"drawn": drawn, "validation": held, "resumed": stream.resumed}, file)
