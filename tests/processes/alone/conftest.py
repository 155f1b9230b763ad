from pathlib import Path

import pytest
from tried import JOB, SCRIPT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path
