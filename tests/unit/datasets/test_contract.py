"""What holds for every dataset on loaders: each test runs for DataLoader and FileDataset."""

import json
from collections import Counter

import numpy as np
import pytest
from both_datasets import MAKERS, ROWS, SIZE, network_of_both, write_rows
from torch.utils.data import WeightedRandomSampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.loading.turns import Turns
from mpidata.trainer import loader_access as job
from mpidata.trainer.loader_access import Place

BATCHES = 6
ALL = {
    **MAKERS,
    "loader, random sampler": lambda folder: DataLoader(
        range(ROWS), SIZE, sampler=WeightedRandomSampler(np.arange(1.0, ROWS + 1), ROWS)
    ),
}


@pytest.fixture(params=ALL)
def make(request, monkeypatch, tmp_path):
    write_rows(tmp_path)
    network = network_of_both(2)
    place = Place(network.trainers[0], 0, 1, 2, 2, 5, lambda name, thing: None, Turns(lambda: counted.append(1)))
    counted = []
    monkeypatch.setattr(job, "place", lambda: place)

    def made():
        dataset = ALL[request.param](tmp_path)
        dataset.counted = counted
        return dataset

    yield made
    network.close()


def values(batch):
    return (batch["data"] if isinstance(batch, dict) else batch).tolist()


def epochs_of(dataset, epochs):
    return [[values(batch) for batch in dataset] for _ in range(epochs)]


def test_iterator_length_is_the_number_of_batches_per_epoch(make):
    dataset = make()
    iterator = iter(dataset)
    assert len(iterator) == len(dataset) == BATCHES
    next(iterator)
    assert len(iterator) == BATCHES


def test_next_after_the_end_does_not_change_the_state(make):
    dataset = make()
    iterator = iter(dataset)
    list(iterator)
    before = dataset.state_dict()
    for _ in range(3):
        assert next(iterator, None) is None
    assert dataset.state_dict() == before and before["epoch"] == 1 and before["batches"] == 0
    (_, epoch, batches) = (next(iter(dataset)), *(dataset.state_dict()[key] for key in ("epoch", "batches")))
    assert (epoch, batches) == (1, 1)


def test_each_batch_is_counted_once(make):
    dataset = make()
    epochs_of(dataset, 3)
    assert len(dataset.counted) == 3 * BATCHES


@pytest.mark.parametrize("batches", range(BATCHES + 1))
def test_state_resumes_with_the_remaining_batches(make, batches):
    dataset = make()
    list(dataset)
    iterator = iter(dataset)
    got = [values(next(iterator)) for _ in range(batches)]
    state = json.loads(json.dumps(dataset.state_dict()))
    rest, (following,) = [values(batch) for batch in iterator], epochs_of(dataset, 1)
    again = make()
    again.load_state_dict(state)
    assert again.resumed == ((1, batches) if batches < BATCHES else (2, 0))
    if 0 < batches < BATCHES:
        (remaining,) = epochs_of(again, 1)
        assert remaining == rest
    if not isinstance(dataset, DataLoader) or dataset.sampler.__class__ is not WeightedRandomSampler:
        expected = [got + rest, following] if batches == 0 else [following]
        assert epochs_of(again, len(expected)) == expected
        assert batches != 0 or Counter(sum(expected[0], [])) == Counter(range(ROWS))


def test_state_after_the_last_batch_resumes_at_the_next_epoch(make):
    """Some frameworks take it before they request another batch; older states hold the batch's number."""
    dataset = make()
    iterator = iter(dataset)
    for _ in range(BATCHES):
        next(iterator)
    state = dataset.state_dict()
    again = make()
    again.load_state_dict(state)
    assert again.resumed == (1, 0) and len(list(again)) == BATCHES
    old = make()
    old.load_state_dict({**state, "epoch": 0, "batches": BATCHES})
    assert old.resumed == (1, 0) and len(list(old)) == BATCHES


def test_abandoned_iterator_no_longer_changes_the_position(make):
    dataset = make()
    old = iter(dataset)
    next(old)
    new = iter(dataset)
    next(new)
    next(old)
    assert (dataset.state_dict()["epoch"], dataset.state_dict()["batches"]) == (1, 1)
