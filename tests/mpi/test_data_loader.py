"""mpidata.DataLoader in whole jobs; tests/mpi/test_loader_kills.py covers lost loaders."""

import json

import pytest
from jobs import JobFolder, Result, python


def run(folder: JobFolder, bad: set[int], **loaders: object) -> Result:
    trainers = {"ranks": 1, "program": python("trainers/loaders/killing_indices.py", *bad)}
    folder.write_job({"trainers": trainers, "loaders": loaders})
    return folder.run(timeout=100)


def batches(result: Result) -> list[list[list[int]]]:
    return [json.loads(line) for line in result.marked()]


@pytest.mark.full
def test_index_that_kills_each_loader_is_skipped_if_tolerated(folder: JobFolder) -> None:
    result = run(folder, {9}, ranks=1, spares=2, retries=1, tolerate=1)
    assert result.status == 0, result.logs()
    assert [sum(epoch, []) for epoch in batches(result)] == [[i for i in range(61) if i != 9]] * 2
    result = run(folder, {9}, ranks=1, spares=2, retries=1, tolerate=0)
    assert result.status != 0 and "index 9 of DataLoader 0" in result.output
