"""The models of the examples with varying lengths predict better than no change."""

import subprocess
from pathlib import Path

import pytest
from example_copy import copy_example
from jobs import BIN, JobFolder, environment


@pytest.mark.parametrize(
    ("name", "makes"), [pytest.param("mesh", [], marks=pytest.mark.full), ("particles", ["make", "-B"])]
)
def test_model_predicts_better_than_no_change(tmp_path: Path, name: str, makes: list[str]) -> None:
    copy_example(name, tmp_path)
    if makes:
        done = subprocess.run(makes, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    command = [str(BIN / "mpidata"), "run", f"{name}.yaml", "--set", "name=job"]
    result = JobFolder(tmp_path).run(command=command, timeout=90)
    assert result.status == 0, result.logs()
    values = {key: value["last"] for key, value in result.summary["training"].items()}
    assert values["validation_loss"] < values["no_change"] / 3
    assert result.run is not None
    assert (result.run / "prediction.png").read_bytes().startswith(b"\x89PNG")
