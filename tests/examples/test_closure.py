"""In the example of a closure that is trained in the loop, its errors fall below those of the plain scheme."""

from pathlib import Path

import pytest
from example_copy import copy_example
from jobs import BIN, JobFolder


@pytest.mark.full
@pytest.mark.parametrize("file", ["closure.yaml", "asked.yaml"])
def test_closure_trained_in_the_loop_reduces_the_error(tmp_path: Path, file: str) -> None:
    copy_example("closure", tmp_path)
    job = JobFolder(tmp_path)
    command = [str(BIN / "mpidata"), "run", file, "--set", "name=job"]
    result = job.run(command=command, timeout=120)
    assert result.status == 0, result.logs()
    training = result.summary["training"]
    assert training["error_with_closure"]["last"] < 0.7 * training["error"]["last"], training
