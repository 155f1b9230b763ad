import pytest
from fake_library import make_plan


@pytest.fixture
def plan(tmp_path):
    return make_plan(run=tmp_path / "run", record_path=tmp_path / "samples")
