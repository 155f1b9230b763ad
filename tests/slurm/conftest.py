"""Fixtures of the tests that need a Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from batch import BatchFolder
from cluster import Cluster
from jobs import ranks_of


@pytest.fixture
def folder(cluster: Cluster, tmp_path: Path) -> Iterator[BatchFolder]:
    yield BatchFolder(tmp_path, cluster)
    cluster.cancel_all()
    for process in ranks_of(tmp_path):
        process.kill()
