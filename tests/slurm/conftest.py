"""Fixtures of the tests that need a Slurm: one of their own, on this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from batch import BatchFolder
from cluster import Cluster, missing
from heat2d_job import build_heat2d
from jobs import ranks_of


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    with Cluster(tmp_path_factory.mktemp("slurm")) as started:
        yield started


@pytest.fixture(scope="session")
def built_heat2d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heat2d")
    build_heat2d(folder)
    return folder


@pytest.fixture
def folder(cluster: Cluster, tmp_path: Path) -> Iterator[BatchFolder]:
    yield BatchFolder(tmp_path, cluster)
    cluster.cancel_all()
    for process in ranks_of(tmp_path):
        process.kill()
