"""Lightning, accelerate and Ignite as their users write them: each sample is trained on once, and validated once."""

from collections import Counter

import pytest
from jobs import JobFolder, Result, python

SIMULATIONS, VALIDATION, STEPS = 6, 3, 7  # validation samples: 11 of one trainer, 10 of the other
TRAINED = Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))
VALIDATED = Counter(
    (simulation, step) for simulation in range(SIMULATIONS, SIMULATIONS + VALIDATION) for step in range(STEPS)
)


def run(folder: JobFolder, framework: str, *given: str) -> Result:
    folder.variables = {"STEPS": str(STEPS)}
    folder.job(
        trainers={"ranks": 2, "program": python(f"trainers/frameworks/with_{framework}.py", *given)},
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": VALIDATION},
    )
    return folder.run(timeout=150)


def check_used(folder: JobFolder, result: Result) -> list[Counter[tuple[int, int]]]:
    """Check that each sample was trained on once; returns the validation samples of each trainer."""
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", 2)
    assert [(each["rank"], each["world"]) for each in found] == [(0, 2), (1, 2)]
    assert found[0]["sums"] == found[1]["sums"], "DDP keeps the models the same"
    assert Counter((simulation, step) for each in found for simulation, step in each["used"]) == TRAINED
    return [Counter((simulation, step) for simulation, step in each["validated"]) for each in found]


def check_shares(validated: list[Counter[tuple[int, int]]]) -> None:
    assert sorted(share.total() for share in validated) == [10, 11] and sum(validated, Counter()) == VALIDATED


@pytest.mark.parametrize("given", ["loader", pytest.param("module", marks=pytest.mark.full)])
def test_lightning_with_ddp(folder: JobFolder, given: str) -> None:
    validated = check_used(folder, run(folder, "lightning", given))
    if given == "loader":
        check_shares(validated)


@pytest.mark.parametrize("given", [pytest.param("stream", marks=pytest.mark.full), "loader"])
def test_accelerate(folder: JobFolder, given: str) -> None:
    for gathered in check_used(folder, run(folder, "accelerate", given)):
        assert gathered == VALIDATED


@pytest.mark.full
def test_ignite(folder: JobFolder) -> None:
    check_shares(check_used(folder, run(folder, "ignite")))
    for each in folder.read_notes("used", 2):
        found, wanted = each["errors"]
        assert found == pytest.approx(wanted, rel=1e-5)
