"""A job with a framework's training loop fails within an epoch and is resumed: it uses the same data as one run."""

from collections import Counter

import pytest
from jobs import JobFolder, python

ROWS, EPOCHS, SIMULATIONS, STEPS = 120, 2, 8, 20


@pytest.mark.full
@pytest.mark.parametrize(
    ("framework", "given"),
    [
        *(("stateful", given) for given in ("stream", "files")),
        *(("ignite", given) for given in ("stream", "loader", "files")),
        *(("accelerate", given) for given in ("stream", "loader", "files")),
    ],
)
@pytest.mark.parametrize("trainers", [1, 2])
def test_resumed_job_uses_the_same_samples_as_an_uninterrupted_run(
    folder: JobFolder, framework: str, given: str, trainers: int
) -> None:
    program = python("trainers/frameworks/resumes.py", framework, given)
    changes = {"trainers": {"ranks": trainers, "program": program}, "checkpoint": {"every_s": 0.1}}
    if given == "stream":
        folder.variables = {"STEPS": str(STEPS)}
        space = {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}}
        folder.job(solvers={"function": "functions.steps:simulate"}, parameters=space, **changes)
        expected = Counter(1000 * simulation + step for simulation in range(SIMULATIONS) for step in range(STEPS))
    else:
        folder.write_job({"name": "job", "loaders": {"ranks": 1}, **changes})
        expected = Counter({row: EPOCHS for row in range(ROWS)})
    failed = folder.run(timeout=150)
    assert failed.status == 1 and failed.run is not None, failed.logs()
    assert "status 3" in failed.summary["error"], failed.logs()
    (folder.path / "resumed").touch()
    result = folder.resume(failed.run, timeout=150)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    found = folder.read_notes("used", trainers)
    assert all(each["resumed"] > 0 for each in found)
    assert Counter(number for each in found for number in each["used"]) == expected
