import pytest
from fake_library import make_plan


@pytest.fixture
def plan(tmp_path, request):
    """The plan of a job that records; a test's parameter may be another function that makes the plan."""
    make = getattr(request, "param", make_plan)
    return make(run=tmp_path / "run", record_path=tmp_path / "samples")
