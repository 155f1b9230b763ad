"""A folder with the files that the job files of these tests name."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    return tmp_path
