import gc

import pytest
from part_files import Job


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
