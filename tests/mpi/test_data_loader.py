"""mpidata.DataLoader in whole jobs; tests/mpi/test_loader_kills.py has what comes of lost loaders."""

import json

import pytest
import yaml
from jobs import JobFolder, Result

SCRIPT = """
import json, os, signal
import mpidata

class Numbers:
    def __len__(self):
        return 61
    def __getitem__(self, index):
        if index in BAD:
            os.kill(os.getpid(), signal.SIGKILL)
        return index

if __name__ == "__main__":
    loader = mpidata.DataLoader(Numbers(), batch_size=4)
    for epoch in range(2):
        print("=>", json.dumps([batch.tolist() for batch in loader]), flush=True)
"""


def run(folder: JobFolder, bad: set[int], **loaders: object) -> Result:
    folder.write(train=SCRIPT.replace("BAD", repr(bad)))
    program = {"ranks": 1, "program": ["python", "train.py"]}
    (folder.path / "job.yaml").write_text(yaml.safe_dump({"trainers": program, "loaders": loaders}))
    return folder.run(timeout=100)


def batches(result: Result) -> list[list[list[int]]]:
    lines = result.log("trainer", 0).splitlines()
    return [json.loads(line[3:]) for line in lines if line.startswith("=> ")]


@pytest.mark.full
def test_an_index_that_kills_each_loader_is_left_out_as_far_as_tolerated(folder: JobFolder) -> None:
    result = run(folder, {9}, ranks=1, spares=2, retries=1, tolerate=1)
    assert result.status == 0, result.logs()
    assert [sum(epoch, []) for epoch in batches(result)] == [[i for i in range(61) if i != 9]] * 2
    result = run(folder, {9}, ranks=1, spares=2, retries=1, tolerate=0)
    assert result.status != 0 and "index 9 of DataLoader 0" in result.output
