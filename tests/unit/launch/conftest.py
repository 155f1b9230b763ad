from collections.abc import Callable
from pathlib import Path

import pytest
from ended_run import EndedRun
from launch_job import build_shim


@pytest.fixture
def case(tmp_path: Path) -> EndedRun:
    return EndedRun(tmp_path)


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """mpidata-rank."""
    return build_shim(tmp_path_factory.mktemp("shim"), require("cc"))
