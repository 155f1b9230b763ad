import gc

import pytest
from part_files import Job


@pytest.fixture(scope="package", autouse=True)
def _imported():
    # These objects live until the end; scanning them after each test took most of the time.
    gc.collect()
    gc.freeze()


@pytest.fixture
def job(monkeypatch):
    jobs = []

    def start(loaders=1, trainers=1, **kwargs):
        jobs.append(Job(monkeypatch, loaders, trainers, **kwargs))
        return jobs[-1]

    yield start
    for each in jobs:
        each.network.close()
    gc.collect()


@pytest.fixture
def rows(job, tmp_path):
    """All batches of one epoch in order, as lists."""

    def read(paths=tmp_path, columns=None, loaders=1, **settings):
        data = job(loaders).dataset(0, paths, 100, columns, shuffle=None, **settings)
        batches = [{name: tensor.tolist() for name, tensor in batch.items()} for batch in data]
        return {name: [row for batch in batches for row in batch[name]] for name in batches[0]}

    return read
