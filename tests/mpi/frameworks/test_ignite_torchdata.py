"""Ignite, and torchdata's StatefulDataLoader, as their users write them."""

from collections import Counter
from typing import Any

import pytest
from jobs import JobFolder, python

SAMPLES, AT, SIMULATIONS, STEPS = 37, 2, 6, 8


def run(folder: JobFolder, script: str, given: str, trainers: int) -> list[dict[str, Any]]:
    who = {"ranks": trainers, "program": python(f"trainers/frameworks/{script}.py", given)}
    if given == "stream":
        folder.variables = {"STEPS": str(STEPS)}
        space = {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}}
        folder.job(trainers=who, solvers={"function": "functions.steps:simulate"}, parameters=space)
    else:
        folder.write_job({"name": "job", "trainers": who, "loaders": {"ranks": 1}})
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    return folder.read_notes("used", trainers)


def check_rows(found: list[dict[str, Any]]) -> None:
    """Each row comes once in each of two epochs; after a resume from a state, these are as in an uninterrupted run."""
    length = len(found[0]["batches"]) // 2
    for epoch in (0, 1):
        batches = [batch for each in found for batch in each["batches"][epoch * length :][:length]]
        assert Counter(row for batch in batches for row in batch) == Counter(range(SAMPLES))
    assert all(each["rest"] == each["batches"][AT:] for each in found)


def check_samples(found: list[dict[str, Any]]) -> None:
    drawn = Counter(number for each in found for batch in each["batches"] for number in batch)
    assert drawn == Counter(1000 * simulation + step for simulation in range(SIMULATIONS) for step in range(STEPS))


@pytest.mark.parametrize(
    "given", ["loader", *(pytest.param(each, marks=pytest.mark.full) for each in ("files", "stream"))]
)
@pytest.mark.parametrize("trainers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_ignite_uses_each_sample_once(folder: JobFolder, given: str, trainers: int) -> None:
    found = run(folder, "loaders_ignite", given, trainers)
    (check_samples if given == "stream" else check_rows)(found)
    assert {each["world"] for each in found} == {trainers}
    assert len({each["mean"] for each in found}) == 1, "metrics are of all trainers"


@pytest.mark.full
@pytest.mark.parametrize("given", ["files", "stream"])
@pytest.mark.parametrize("trainers", [1, 2])
def test_stateful_data_loader_uses_each_sample_once(folder: JobFolder, given: str, trainers: int) -> None:
    found = run(folder, "loaders_stateful", given, trainers)
    (check_samples if given == "stream" else check_rows)(found)
    assert given == "files" or {each["state"]["batch"] for each in found} == {SIMULATIONS * STEPS // 4 // trainers}
