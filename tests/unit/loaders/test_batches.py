"""A loader's work for DataLoaders, request by request."""

import pickle

import numpy as np
import pytest
from torch.utils.data import default_collate

from mpidata.loaders.batches import Batches
from mpidata.loading.batch_messages import pack_batch
from mpidata.loading.definition import Definition, pack_definition
from mpidata.loading.transport import Kind, Request, Status
from mpidata.native.item import text_of


class Recorded:
    def __init__(self):
        self.answers, self.at = [], []

    def answer(self, request, status, pickle, buffers=()):
        self.answers.append((request.trainer, request.dataset, request.number, status))

    def sign_of_life(self, at, long=False):
        self.at.append(at)


class Data:
    def __len__(self):
        return 9

    def __getitem__(self, index):
        if index == 8:
            raise LookupError("eight")
        return index


@pytest.fixture
def loader():
    requests = Recorded()
    return requests, Batches(requests)


def define(batches, trainer, dataset, payload):
    assert batches.take(Request(trainer, dataset, Kind.DEFINE, 0, memoryview(payload)))


def ask(batches, number, indices=(1, 2), trainer=0, dataset=0, singly=False):
    payload = memoryview(pack_batch(0, 1, 5, singly, (), pickle.dumps(list(indices))))
    batches.take(Request(trainer, dataset, Kind.BATCH, number, payload))


def forget(batches, trainer, dataset, numbers=()):
    return batches.take(Request(trainer, dataset, Kind.FORGET, 0, memoryview(np.array(numbers, np.int64)).cast("B")))


def test_equal_datasets_share_one_copy_until_the_last_is_forgotten(loader):
    _, batches = loader
    payload = pack_definition(Definition(Data(), default_collate, None, True))
    define(batches, 0, 0, payload)
    define(batches, 1, 4, payload)
    define(batches, 1, 5, pack_definition(Definition(Data(), list, None, True)))
    assert len(batches._copies) == 2
    assert forget(batches, 0, 0) and len(batches._copies) == 2
    assert forget(batches, 1, 4) and len(batches._copies) == 1
    assert not forget(batches, 1, 4)  # it may be another worker's


def test_cancelled_batches_are_not_made(loader):
    requests, batches = loader
    define(batches, 0, 0, pack_definition(Definition(Data(), default_collate, None, True)))
    for number in (1, 2, 3):
        ask(batches, number)
    forget(batches, 0, 0, [1, 3])
    while batches.work():
        pass
    assert requests.answers[1:] == [(0, 0, 2, Status.OK)]
    ask(batches, 4)
    forget(batches, 0, 0)
    assert not batches.work() and len(requests.answers) == 2


def test_signs_of_life_name_the_index_and_an_exception_is_an_answer(loader):
    requests, batches = loader
    define(batches, 2, 3, pack_definition(Definition(Data(), default_collate, None, True)))
    ask(batches, 17, (4, 8), trainer=2, dataset=3)
    assert batches.work()
    assert [text_of(at) for at in requests.at[-3:]] == ["index 4 of DataLoader 3", "index 8 of DataLoader 3", ""]
    assert requests.answers[-1] == (2, 3, 17, Status.EXCEPTION)
    assert not batches.work()


class Many(Data):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize(("singly", "at"), [(False, ["[4, 5]"]), (True, ["4", "5"])])
def test_getitems_names_each_index_only_when_requested_singly(loader, singly, at):
    requests, batches = loader
    define(batches, 0, 0, pack_definition(Definition(Many(), default_collate, None, True)))
    requests.at.clear()
    ask(batches, 1, (4, 5), singly=singly)
    assert batches.work()
    assert [text_of(at) for at in requests.at] == [f"index {index} of DataLoader 0" for index in at] + [""]
