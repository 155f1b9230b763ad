"""Each trainer gets the validation samples of all, or a share, which may be padded and of which one is empty."""

from jobs import JobFolder

SOLVER = """
import mpidata
import numpy as np

def simulate(alpha, simulation):
    yield mpidata.Constants(k=np.full(2, simulation, np.int16), points=np.zeros((simulation + 1, 2), np.float32))
    for step in range(2):
        yield {"u": np.full((4, 6), 10.0 * simulation + step), "tag": np.full(3, step, np.uint32)}
"""

TRAINER = """
import json, os
import mpidata

stream = mpidata.MPIStreamDataset(batch_size=1)
share, even = stream.validation(), stream.validation(even=True)
every = stream.validation(share=False)

def told(sample):
    return [int(sample["simulation"]), int(sample["step"]), float(sample["u"][0, 0]), int(sample["tag"][2]),
            int(sample["k"][1]), list(sample["points"].shape), int(sample["n"])]

notes = {"share": [told(s) for s in share], "every": [told(s) for s in every],
         "even": [[bool(s["mask"]), *told(s)] for s in even],
         "dtypes": [str(every[0][n].dtype) for n in ("u", "tag", "k")]}
with open(f"told-{os.environ['RANK']}.json", "w") as file:
    json.dump(notes, file)
for batch in stream:
    pass
"""


def test_validation_shares_are_correct_if_one_is_empty(folder: JobFolder) -> None:
    folder.write(sim=SOLVER, train=TRAINER)
    folder.job(
        trainers={"ranks": 3},
        solvers={"function": "sim:simulate"},
        parameters={"count": 3, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": 1},
        fields={
            "u": {"dtype": "bfloat16", "shape": [4, 6]},
            "tag": {"dtype": "uint32", "shape": [3]},
            "k": {"dtype": "int16", "shape": [2], "per": "simulation"},
            "points": {"dtype": "float32", "shape": ["n", 2], "per": "simulation"},
        },
    )
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    found = folder.read_notes("told", 3)
    samples = [[3, step, 30.0 + step, step, 3, [4, 2], 4] for step in (0, 1)]
    assert [each["every"] for each in found] == [samples] * 3
    assert found[0]["dtypes"] == ["torch.bfloat16", "torch.uint32", "torch.int16"]
    assert sorted(sample for each in found for sample in each["share"]) == samples
    padded = [[True, *each["share"][0]] if each["share"] else [False, *samples[0]] for each in found]
    assert [each["even"] for each in found] == [[sample] for sample in padded]
    assert sum(not each["share"] for each in found) == 1
