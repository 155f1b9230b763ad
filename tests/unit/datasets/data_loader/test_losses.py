"""Loaders join, leave and die: each batch comes exactly once, and nothing is kept without need."""

import gc
import random
import sys
import threading
import time
import types

import numpy as np
import pytest
import torch
from fake_loaders import FakeRequests
from waiting import stays

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.errors import StreamError
from mpidata.loading.transport import Kind
from mpidata.native.item import text_of

BYTES = 4096


class Numbers:
    READING_S = 0.0005

    def __init__(self, n=64):
        self.n, self.extra = n, 0

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        time.sleep(self.READING_S)
        return torch.full((BYTES,), index + self.extra)


@pytest.mark.parametrize("seed", range(4))
def test_every_batch_arrives_once_whichever_loaders_die(job_of, threads, seed):
    network = job_of(loaders=3, program=threads).network
    draw = random.Random(seed)
    loader = DataLoader(Numbers(), batch_size=2, shuffle=True)
    for _ in range(2):
        given = []
        for batch in loader:
            given += batch[:, 0].tolist()
            if draw.random() < 0.15:
                network.kill(draw.choice(sorted(network.alive)))
                if draw.random() < 0.8 or not network.alive:
                    network.start()
        assert sorted(given) == list(range(64))


def test_iteration_resumes_when_the_only_loader_is_replaced(job_of):
    network = job_of(loaders=1).network
    batches = iter(DataLoader(range(20), batch_size=2))
    next(batches)
    network.kill(0)
    threading.Timer(0.3, network.start).start()
    assert [batch.tolist() for batch in batches] == [[i, i + 1] for i in range(2, 20, 2)]


def test_retiring_loader_finishes_its_batches_and_gets_no_more_requests(job_of, threads):
    job = job_of(loaders=2, program=threads)
    batches = iter(DataLoader(Numbers(), batch_size=2, prefetch_factor=2))
    given = [next(batches)]
    job.network.retire(0)
    given.append(next(batches))
    before = sum(sent[0] == 0 for sent in job.requests(Kind.BATCH))
    for number, batch in enumerate(batches):
        given.append(batch)
        if number == 10:
            job.network.kill(0)
    assert [batch[0, 0].item() for batch in given] == list(range(0, 64, 2))
    asked = [sent[0] for sent in job.requests(Kind.BATCH)]
    assert len(asked) == 32 and 0 < asked.count(0) == before


def test_joining_loader_gets_requests_immediately(job_of, threads):
    job = job_of(loaders=1, program=threads)
    batches = iter(DataLoader(Numbers(), batch_size=2))
    next(batches)
    new = job.network.start()
    list(batches)
    assert sum(sent[0] == new for sent in job.requests(Kind.BATCH)) > 5


class Rows:
    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return torch.zeros(self.numbers, dtype=torch.uint8)


def test_prefetch_factor_limits_outstanding_requests_per_loader(job_of):
    job = job_of(loaders=2)
    batches = iter(DataLoader(range(100), prefetch_factor=3))
    assert stays(lambda: len(job.requests(Kind.BATCH)) == 6, 0.1)
    next(batches)
    assert len(job.requests(Kind.BATCH)) == 7


@pytest.mark.parametrize(("numbers", "ahead"), [(1, 16), (1_000_000, 8), (8 << 20, 2)])
def test_more_batches_are_requested_ahead_if_they_are_small(job_of, numbers, ahead):
    job = job_of(loaders=1)
    batches = iter(DataLoader(Rows(numbers), batch_size=1))
    assert len(job.requests(Kind.BATCH)) == 2
    next(batches)
    assert len(job.requests(Kind.BATCH)) == 1 + ahead


class Held(Numbers):
    may_go = threading.Event()

    def __getitem__(self, index):
        Held.may_go.wait(20)
        return super().__getitem__(index)


def test_abandoned_iterator_cancels_its_requests(job_of, monkeypatch):
    answered, answer = [], FakeRequests.answer
    monkeypatch.setattr(
        FakeRequests, "answer", lambda self, asked, *what: (answered.append(asked.number), answer(self, asked, *what))
    )
    job = job_of(loaders=1)
    Held.may_go.clear()
    loader = DataLoader(Held(), batch_size=1, prefetch_factor=4)
    batches = iter(loader)
    del batches
    gc.collect()
    Held.may_go.set()
    (back,) = job.requests(Kind.FORGET)
    assert np.frombuffer(back[4], np.int64).tolist() == [1, 2, 3, 4]
    next(iter(loader))
    assert 5 in answered and not {3, 4} & set(answered)


def test_concurrent_iterators_each_get_all_batches(job_of):
    job_of(loaders=2)
    loader = DataLoader(range(20), batch_size=3)
    assert all(torch.equal(a, b) for a, b in zip(loader, loader, strict=True))


def test_dataset_changes_take_effect_after_refresh(job_of):
    job = job_of(loaders=1)
    dataset = Numbers(4)
    loader = DataLoader(dataset)
    dataset.extra = 100
    assert [int(batch[0, 0]) for batch in loader] == [0, 1, 2, 3]
    loader.refresh()
    assert [int(batch[0, 0]) for batch in loader] == [100, 101, 102, 103]
    gc.collect()
    whole = [sent for sent in job.requests(Kind.FORGET) if not sent[4]]
    assert len(whole) == 1
    number = whole[0][1]
    del loader
    gc.collect()
    job.network.trainers[0].take(1 << 20, 0.0)
    assert {sent[1] for sent in job.requests(Kind.FORGET)} > {number}


def built():
    return Numbers(6)


def failing():
    raise LookupError("no such data")


def test_named_dataset_is_built_on_the_loaders(job_of, monkeypatch):
    module = types.ModuleType("my_data")
    module.built, module.failing = built, failing
    monkeypatch.setitem(sys.modules, "my_data", module)
    job_of()
    loader = DataLoader("my_data:built", batch_size=4)
    assert len(loader) == 2 and [int(n) for batch in loader for n in batch[:, 0]] == list(range(6))
    with pytest.raises(LookupError, match=r"(?s)while a loader built the dataset.*Traceback.*no such data"):
        list(DataLoader("my_data:failing", batch_size=4))


def test_objects_of_the_callers_classes_keep_their_class(job_of):
    class Mine:
        pass

    job_of()
    (batch,) = DataLoader([Mine()], collate_fn=lambda samples: samples[0])
    assert type(batch) is Mine


class Many(Numbers):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("dataset", [Numbers(), Many()])
def test_index_that_kills_loaders_repeatedly_is_skipped(job_of, monkeypatch, dataset):
    """The loader dies when it reports index 9, and then answers no more."""
    network = job_of(loaders=1).network
    died = []

    def say(requests, at, long=False):
        text = text_of(at)
        if text.startswith("index 9 ") or (text.startswith("index [") and ", 9," in text):
            died.append(at)
            network.kill(requests.number, at)
            network.start()

    monkeypatch.setattr(FakeRequests, "sign_of_life", say)
    given = [n for batch in DataLoader(dataset, batch_size=8) for n in batch[:, 0].tolist()]
    assert given == [n for n in range(64) if n != 9]
    assert len(died) == (3 if type(dataset) is Numbers else 5)
    with pytest.raises(StreamError, match="Nothing remains of a batch.*index 9"):
        list(DataLoader(dataset, batch_size=None))


def test_dataset_whose_construction_kills_loaders_is_an_error(job_of, monkeypatch):
    network = job_of(loaders=1).network

    def say(requests, at, long=False):
        if text_of(at).startswith("building"):
            network.kill(requests.number, at)
            network.start()

    monkeypatch.setattr(FakeRequests, "sign_of_life", say)
    with pytest.raises(StreamError, match="3 loaders have died while they built"):
        list(DataLoader(Numbers()))
