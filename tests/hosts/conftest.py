"""Fixtures of the tests on several hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import Hosts, missing
from jobs import kill_ranks


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Yield three hosts for one test, which may break them."""
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    with Hosts(tmp_path_factory.mktemp("hosts"), 3) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_rank_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    kill_ranks(tmp_path)
