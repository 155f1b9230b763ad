"""Lightning and accelerate as their users write them: each sample is trained on once, by one of the trainers."""

from collections import Counter

import pytest
from jobs import JobFolder, Result, python

SIMULATIONS, STEPS = 6, 8


def run(folder: JobFolder, framework: str, given: str) -> Result:
    folder.variables = {"STEPS": str(STEPS)}
    folder.job(
        trainers={"ranks": 2, "program": python(f"trainers/frameworks/with_{framework}.py", given)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
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


def test_accelerate(folder: JobFolder) -> None:
    check_used(folder, run(folder, "accelerate", "stream"))


def test_a_loader_that_accelerate_would_deal_out_is_refused(folder: JobFolder) -> None:
    result = run(folder, "accelerate", "loader")
    assert result.status == 1, result.logs()
    assert "deals the batches of one trainer out to all" in result.summary["error"]
    assert "Leave the DataLoader out" in result.summary["error"]
