"""What the tests of `mpidata try` share: a job, a script that notes what it draws, and how it is tried."""

import json
import subprocess
import sys
from pathlib import Path

JOB = """
trainers: {ranks: 2, program: [./not_there_yet]}
solvers: {groups: 3, function: "not_there:yet"}
parameters: {count: 10, space: {a: [0, 1], b: [2, 3]}}
validation: {count: 2}
fields: {u: {dtype: float32, shape: [5, 4]}, n: {dtype: int32, shape: [3]}}
samples: {statistics: {u: 1}}
loaders: {ranks: 1}
checkpoint: {every_s: 1}
"""
SCRIPT = """
import json, sys
import numpy as np
import mpidata

stream = mpidata.MPIStreamDataset(batch_size=int(sys.argv[1]))
stream.register(state=type("State", (), {"state_dict": dict, "load_state_dict": lambda self, state: None})())
whole = {"validation": [sample["u"].sum().item() for sample in stream.validation()]}
batches = []
for number, batch in enumerate(stream):
    stream.report(loss=1.0)
    stream.losses(batch, np.ones(len(batch["time"])))
    batches.append({name: value.tolist() for name, value in batch.items()})
    if sys.argv[2:] == ["leave"] and number == 2:
        break
whole |= {"batches": batches, "expected": stream.expected_batches, "resumed": stream.resumed}
if "means" in sys.argv:
    whole["means"] = {name: of.mean.tolist() for name, of in stream.statistics().items()}
whole["mpi"] = "mpi4py.MPI" in sys.modules
json.dump(whole, open("drawn.json", "w"))
sys.exit(3)
"""


def attempt(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [str(Path(sys.executable).parent / "mpidata"), "try", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


def drawn(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "drawn.json").read_text())
    return found
