"""The example whose job loses a trainer learns as much as an undisturbed job."""

import json
import sys
from pathlib import Path

import pytest
from example_copy import copy_example
from jobs import JobFolder


@pytest.mark.full
def test_run_that_loses_a_trainer_learns_as_much(tmp_path: Path) -> None:
    copy_example("elastic", tmp_path)
    folder = JobFolder(tmp_path)
    job = folder.start(command=[sys.executable, "compare.py"])
    output, _ = job.communicate(timeout=150)
    assert job.returncode == 0, output
    runs = tmp_path / "runs" / "elastic"
    whole, disturbed = (json.loads((runs / name / "summary.json").read_text()) for name in "12")
    assert "lost_trainers" not in whole and disturbed["lost_trainers"] == [2] and "3 trainers before, 2 now" in output
    errors = [summary["training"]["error"]["last"] for summary in (whole, disturbed)]
    assert max(errors) < 1.5 * min(errors) and max(errors) < 2e-3, errors
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
