"""Lightning and accelerate as their users write them: each sample is trained on once, by one of the trainers."""

from collections import Counter

import pytest
from jobs import JobFolder, Result, python

SIMULATIONS, VALIDATION, STEPS = 6, 3, 8


def run(folder: JobFolder, framework: str, given: str) -> Result:
    folder.variables = {"STEPS": str(STEPS)}
    folder.job(
        trainers={"ranks": 2, "program": python(f"trainers/frameworks/with_{framework}.py", given)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": VALIDATION},
    )
    return folder.run(timeout=150)


def check_used(folder: JobFolder, result: Result) -> None:
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", 2)
    assert [(each["rank"], each["world"]) for each in found] == [(0, 2), (1, 2)]
    assert found[0]["sums"] == found[1]["sums"], "DDP keeps the models the same"
    used = Counter((simulation, step) for each in found for simulation, step in each["used"])
    assert used == Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))


@pytest.mark.parametrize("given", ["loader", pytest.param("module", marks=pytest.mark.full)])
def test_lightning_with_ddp(folder: JobFolder, given: str) -> None:
    check_used(folder, run(folder, "lightning", given))
    if given == "loader":
        validated = Counter((i, s) for each in folder.read_notes("used", 2) for i, s in each["validated"])
        simulations = range(SIMULATIONS, SIMULATIONS + VALIDATION)
        assert validated == Counter((simulation, step) for simulation in simulations for step in range(STEPS))


@pytest.mark.parametrize("given", [pytest.param("stream", marks=pytest.mark.full), "loader"])
def test_accelerate(folder: JobFolder, given: str) -> None:
    check_used(folder, run(folder, "accelerate", given))
