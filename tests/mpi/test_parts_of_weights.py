"""A model of which each trainer has a part resumes with another number of trainers."""

from pathlib import Path

import pytest
from jobs import JobFolder, python, sets


def run_until_checkpoint(folder: JobFolder, trainers: int) -> Path:
    folder.variables = {"STEPS": "12", "SLEEP_S": "0.02"}
    folder.job(
        trainers={"ranks": trainers, "program": python("trainers/checkpoint/parts_of_weights.py", 5)},
        solvers={"function": "functions.steps:simulate", "groups": 2},
        parameters={"count": 24, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "firo", "capacity": 20, "watermark": 6},
    )
    result = folder.run(timeout=80)
    assert result.status == 0 and result.run is not None, result.logs()
    return result.run


@pytest.mark.full
@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (3, 2)])
def test_resume_redistributes_weights_to_another_number_of_trainers(folder: JobFolder, before: int, after: int) -> None:
    run = run_until_checkpoint(folder, before)
    result = folder.resume(run, *sets(f"trainers.ranks={after}"), timeout=80)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    (_, notes), (resumed, again) = folder.read_notes("first", 1)[0], folder.read_notes("resumed", 1)[0]
    assert resumed > 5 and len(again) > 2
    weights, moments, steps, rates = again[str(resumed)]
    assert [weights, moments, steps, rates] == notes[str(resumed)]
    assert len(weights) == 4 and len(moments) == 8 and steps == [resumed] * 4 and rates[0] < 0.01
