"""Fixtures of the tests over several hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from heat2d_job import build_heat2d
from hosts import Hosts, missing
from jobs import ranks_of


@pytest.fixture(scope="session")
def built_heat2d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heat2d")
    build_heat2d(folder)
    return folder


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Three hosts, for one test: it may break them."""
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    with Hosts(tmp_path_factory.mktemp("hosts"), 3) as started:
        yield started


@pytest.fixture(autouse=True)
def _no_rank_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in ranks_of(tmp_path):
        process.kill()
