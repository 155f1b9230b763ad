"""Simulations that were set aside stay so when the run is resumed, unless they are to run again."""

from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder


@pytest.mark.full
def test_resume_retries_set_aside_simulations_only_on_request(folder: JobFolder) -> None:
    folder.job(
        trainers=DRAIN,
        solvers={"function": "functions.failing.needs_mending:simulate"},
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run()
    assert result.status == 1 and "Field 'u' was not put" in result.summary["error"]
    result = folder.resume(Path("runs/job/1"))
    assert result.status == 1 and "1 simulation that had been set aside will not be run again" in result.output
    assert [entry["simulation"] for entry in result.summary["set_aside"]] == [1]
    for name in ("mended", "whole"):
        (folder.path / name).touch()
    result = folder.resume(Path("runs/job/1"), "--retry-set-aside")
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["set_aside"] == []
