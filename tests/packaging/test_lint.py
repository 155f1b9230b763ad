"""The Python files pass ruff, and the packages as installed pass mypy --strict."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([sys.executable, "-m", "ruff", "check", "."], id="ruff check"),
        pytest.param([sys.executable, "-m", "ruff", "format", "--check", "."], id="ruff format"),
        pytest.param(["sh", "tools/typecheck.sh", sys.executable], id="mypy"),
    ],
)
def test_lint(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
