import pytest
from fake_library import make_plan


@pytest.fixture
def plan(tmp_path, request):
    """Of a job that records; a test's parameter may be another function that makes it."""
    make = getattr(request, "param", make_plan)
    return make(run=tmp_path / "run", record_path=tmp_path / "samples")
