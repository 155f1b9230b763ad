"""The Trainer of transformers as its users write it."""

import json
import signal
from collections import Counter
from typing import Any

import pytest
from interrupted import interrupt
from jobs import JobFolder, Result, python

SIMULATIONS, STEPS, VALIDATION = 6, 7, 3
TRAINED = Counter((simulation, step) for simulation in range(SIMULATIONS) for step in range(STEPS))
VALIDATED = Counter((simulation, step) for simulation in range(SIMULATIONS, 9) for step in range(STEPS))


def run(folder: JobFolder, trainers: int, **validation: bool) -> tuple[Result, list[Any]]:
    folder.variables = {"STEPS": str(STEPS)}
    folder.job(
        trainers={
            "ranks": trainers,
            "program": python("trainers/frameworks/with_transformers.py", json.dumps(validation)),
        },
        solvers={"function": "functions.steps:simulate"},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        validation={"count": VALIDATION},
    )
    result = folder.run(timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "This pass over the stream is empty" not in result.logs(), "by which transformers finds the end"
    return result, folder.read_notes("used", trainers)


@pytest.mark.parametrize("trainers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_each_sample_is_trained_on_once_and_validated_once(folder: JobFolder, trainers: int) -> None:
    _, found = run(folder, trainers)
    assert [(each["rank"], each["world"]) for each in found] == [(rank, trainers) for rank in range(trainers)]
    assert all(each["sums"] == found[0]["sums"] for each in found), "the models are the same"
    assert Counter((i, s) for each in found for i, s in each["used"]) == TRAINED
    for each in found:  # 21 samples: the two trainers have 11 and 10
        assert Counter((i, s) for i, s, _ in each["seen"]) == VALIDATED
    assert sum(each["evaluated"] for each in found) == 21 + (trainers - 1)


@pytest.mark.full
@pytest.mark.parametrize("validation", [{"share": False}, {"even": True}])
def test_unshared_and_padded_validation_sees_each_sample_once(folder: JobFolder, validation: dict[str, bool]) -> None:
    _, found = run(folder, 2, **validation)
    for each in found:
        assert Counter((i, s) for i, s, real in each["seen"] if real) == VALIDATED
        assert len(each["seen"]) == (22 if "even" in validation else 21)


@pytest.mark.full
@pytest.mark.parametrize(
    ("how", "trainers", "by"),
    [
        ("registered", 1, signal.SIGTERM),
        ("registered", 2, signal.SIGTERM),
        ("registered", 2, signal.SIGINT),
        ("both", 1, signal.SIGTERM),
    ],
)
def test_resume_restores_the_registered_state(folder: JobFolder, how: str, trainers: int, by: int) -> None:
    result = interrupt(folder, "resumes_transformers.py", trainers, how, by)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    _, (_, resumed, at) = (line.split() for line in result.marked())
    assert 0 < int(at) * 4 <= int(resumed) <= int(at) * 4 + 8, "a batch fetched ahead, and part of the next"
    found = folder.read_notes("used", trainers)
    for each in found:
        assert len(each["used"]) == 240 // trainers - (int(resumed) - int(at) * 4)
        first = each["steps"] - -(-(240 // trainers - int(resumed)) // 4)
        later = how == "both" and first > int(at) and first % 5 == 0  # transformers saved after the job's checkpoint
        assert first == int(at) or later, "its own count goes on"
    assert max(Counter((i, s) for each in found for i, s in each["used"]).values()) == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "resumes_from, sentence",
    [
        ("older", "transformers resumed from a checkpoint of step 5 (resume_from_checkpoint), but the job's"),
        ("nothing", "the stream would continue with an untrained model"),
    ],
)
def test_a_checkpoint_of_another_step_is_refused(folder: JobFolder, resumes_from: str, sentence: str) -> None:
    result = interrupt(folder, "resumes_transformers.py", 1, resumes_from)
    assert result.status == 1 and sentence in result.summary["error"], result.logs()
