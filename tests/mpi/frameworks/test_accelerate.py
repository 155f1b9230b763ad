"""accelerate with datasets on loaders and with a stream in a DataLoader; also Lightning when it prefetches."""

from collections import Counter

import pytest
from jobs import JobFolder, python

SAMPLES, VALIDATION, AT = 37, 21, 2


@pytest.mark.full
@pytest.mark.parametrize("given", ["loader", "files"])
@pytest.mark.parametrize("trainers", [1, 2])
def test_accelerate_uses_each_row_of_loaders_and_resumes(folder: JobFolder, given: str, trainers: int) -> None:
    program = python("trainers/frameworks/loaders_accelerate.py", given)
    folder.write_job({"name": "job", "trainers": {"ranks": trainers, "program": program}, "loaders": {"ranks": 1}})
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", trainers)
    assert all(each["sums"] == [found[0]["sums"][0]] * 2 for each in found), "resumed, the model becomes the same"
    length = len(found[0]["batches"]) // 2
    for epoch in (0, 1):
        rows = Counter(row for each in found for batch in each["batches"][epoch * length :][:length] for row in batch)
        filling = sum(rows.values()) - SAMPLES
        assert set(rows) == set(range(SAMPLES)) and filling == (trainers - 1 if given == "loader" else 0)
    for each in found:
        assert each["rest"] == each["batches"][AT:]
        assert each["stepped"] == 2 * [*([False, True] * (length // 2)), *([True] * (length % 2))]
        assert Counter(each["validated"]) == Counter(range(VALIDATION)), "each sample is counted once"


@pytest.mark.full
@pytest.mark.parametrize("size", ["whole", "samples", "stateful"])
def test_stream_in_a_data_loader_is_not_sharded_without_dispatch_batches(folder: JobFolder, size: str) -> None:
    folder.variables = {"STEPS": "8"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/frameworks/undivided_accelerate.py", size)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", 2)
    assert Counter((i, s) for each in found for i, s in each["used"]) == Counter(
        (i, s) for i in range(6) for s in range(8)
    )
    assert all(each["steps"] == [4, 6] for each in found), "there is a step after the last batch"


def _stream_job(folder: JobFolder, how: str) -> None:
    folder.variables = {"STEPS": "8"}
    folder.job(
        trainers={"ranks": 2, "program": python("trainers/frameworks/left_early.py", how)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
    )


@pytest.mark.parametrize(
    "how", ["whole", *(pytest.param(how, marks=pytest.mark.full) for how in ("samples", "lightning"))]
)
def test_prefetched_batches_are_used_in_the_next_pass(folder: JobFolder, how: str) -> None:
    _stream_job(folder, how)
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", 2)
    everything = {(i, s): 1 for i in range(6) for s in range(8)}
    assert Counter((i, s) for each in found for i, s in each["used"]) == everything, result.logs()
    assert found[0]["weights"] == found[1]["weights"], "without a GPU, too, the trainers train one model"


@pytest.mark.full
def test_trainers_that_accelerate_treats_as_single_processes_are_refused(folder: JobFolder) -> None:
    _stream_job(folder, "whole")
    folder.variables["ACCELERATE_USE_CPU"] = "false"
    result = folder.run(timeout=150)
    assert result.status == 1 and "Give Accelerator(cpu=True)" in result.output, result.output
