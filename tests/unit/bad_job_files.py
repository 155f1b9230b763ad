"""The error messages for a bad job file."""

from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.errors import JobFileError

__all__ = ["GOOD", "problems"]

GOOD = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters:
  count: 8
  space: {alpha: [0.01, 0.1]}
fields: {u: {shape: [4]}}
"""
"""A job file without mistakes."""


def problems(folder: Path, text: str, *overrides: str) -> list[str]:
    """Return the messages, one for each mistake."""
    (folder / "job.yaml").write_text(text)
    with pytest.raises(JobFileError) as caught:
        load_job(folder / "job.yaml", overrides)
    return str(caught.value).splitlines()
