"""Checks each sample against what was put, and writes (simulation, step) of all to seen-<trainer>.json.

Trainers that are `idle` in spec.json draw nothing, and end when the others have drawn all samples.
With `dies` in it, trainer 0 of the first start asks for a checkpoint after 3 batches and dies once it is written.
"""

import json
import os
import sys
import time
from pathlib import Path

from comparing import PAD, compare, steps_of
from contents import SPEC

import mpidata

batch_size, window, stride = (int(argument) for argument in sys.argv[1:])
rank = int(os.environ["RANK"])
drawn: list[list[int]] = []


class Seen:
    def state_dict(self) -> dict[str, object]:
        return {"drawn": list(drawn)}

    def load_state_dict(self, state: dict[str, list[list[int]]]) -> None:
        drawn[:] = state["drawn"]


kind = SPEC["ragged"]
stream = mpidata.MPIStreamDataset(
    batch_size=batch_size,
    ragged=kind,
    pad=PAD if kind == "padded" else None,
    constants="batch" if SPEC["gathers"] else "apart",
)
constants = None if SPEC["gathers"] else stream.constants
mpidata.register(seen=Seen())
validation = stream.validation()
for i in range(len(validation)):
    compare(validation[i], window, constants=constants)
held = sorted((int(sample["simulation"]), int(sample["step"].reshape(-1)[0])) for sample in validation)
checkpoints = Path(os.environ["MPIDATA_RUN"], "checkpoints")
draw = [int(other) for other in range(int(os.environ["WORLD_SIZE"])) if other not in SPEC["idle"]]
while rank in SPEC["idle"] and not all(Path(f"seen-{other}.json").exists() for other in draw):
    time.sleep(0.01)
for number, batch in enumerate([] if rank in SPEC["idle"] else stream, start=1):
    compare(batch, window, kind, constants)
    time.sleep(SPEC.get("work_s", 0.0))
    drawn += [list(step) for step in steps_of(batch, window)[::window]]
    if SPEC.get("dies") and not stream.resumed:
        if number == 3:
            stream.checkpoint()
        if rank == 0 and any(checkpoints.glob("*/trainer-0000.h5")):  # the others reach theirs without this trainer
            while not any(checkpoints.glob("[0-9]*[0-9]")):
                time.sleep(0.01)
            os._exit(3)
        time.sleep(0.15)  # stands for work: the checkpoint ends before the stream
with open(f"seen-{rank}.json", "w") as file:
    json.dump({"drawn": drawn, "validation": held, "resumed": stream.resumed}, file)
