"""Fixtures of the tests that need a Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from batch import BatchFolder
from cluster import Cluster
from jobs import kill_ranks


@pytest.fixture
def folder(cluster: Cluster, tmp_path: Path) -> Iterator[BatchFolder]:
    yield BatchFolder(tmp_path, cluster)
    cluster.cancel_all()
    kill_ranks(tmp_path)
