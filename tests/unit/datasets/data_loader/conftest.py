import threading
import weakref

import pytest
from fake_loaders import FakeNetwork

from mpidata.loaders.agreements import Agreements
from mpidata.loaders.batches import Batches
from mpidata.loaders.serve import serve
from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place


class Alone(Batches):
    """One batch at a time in all threads; processes would have their own random numbers and get_worker_info()."""

    lock = threading.Lock()

    def work(self):
        with self.lock:
            return super().work()


def alone(requests):
    serve(requests, [Agreements(requests), Alone(requests)])


def at_once(requests):
    serve(requests, [Agreements(requests), Batches(requests)])


class Job:
    """Loaders as threads, and this process as each of the trainers in turn."""

    def __init__(self, monkeypatch, loaders, trainers, program):
        self.network = FakeNetwork(program, loaders, trainers)
        self.loaders, self.trainers = loaders, trainers
        self._monkeypatch = monkeypatch
        self.held = weakref.WeakValueDictionary()
        self.places = [
            Place(side, number, trainers, loaders, 2, 7, self.held.__setitem__)
            for number, side in enumerate(self.network.trainers)
        ]
        self.be(0)

    def be(self, trainer):
        """Become this trainer for the next DataLoader."""
        here = self.places[trainer]
        self._monkeypatch.setattr(job, "place", lambda: here)

    def requests(self, kind):
        return [sent for trainer in self.network.trainers for sent in trainer.sent if sent[2] == kind]


@pytest.fixture(scope="session")
def threads():
    """Return a loader's program whose threads run concurrently."""
    return at_once


@pytest.fixture
def job_of(monkeypatch):
    jobs = []

    def make(loaders=2, trainers=1, program=alone):
        jobs.append(Job(monkeypatch, loaders, trainers, program))
        return jobs[-1]

    yield make
    for made in jobs:
        made.network.close()
