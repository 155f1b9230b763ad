from pathlib import Path

import pytest
from ended_run import EndedRun


@pytest.fixture
def case(tmp_path: Path) -> EndedRun:
    return EndedRun(tmp_path)
