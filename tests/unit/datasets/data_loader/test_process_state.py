"""Which state of the script's process a loader shares, and in which order functions are called there."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.errors import StreamError
from mpidata.loaders.serve import serve
from mpidata.loading.definition import Definition, pack_definition, unpack_definition
from mpidata.trainer import join


class Counting(Dataset):
    """Returns the epoch that was set, and a number of torch's default dtype."""

    def __init__(self, n=8):
        self.n, self.epoch, self.calls = n, -1, 0

    def __len__(self):
        return self.n

    def set_epoch(self, epoch):
        self.epoch = epoch
        self.calls += 1

    def __getitem__(self, index):
        return self.epoch


def batches(loader):
    return [batch.tolist() for batch in loader]


def test_set_epoch_of_a_dataset_reaches_the_loaders(job_of):
    job_of()
    dataset = Counting(4)
    loader = DataLoader(dataset, 2)
    assert batches(loader) == [[-1, -1]] * 2
    for epoch in (3, 4, 4, 0):
        dataset.set_epoch(epoch)
        assert batches(loader) == [[epoch] * 2] * 2 and dataset.epoch == epoch
    assert dataset.calls == 4
    loader.refresh()
    assert batches(loader) == [[0, 0]] * 2


@pytest.mark.parametrize("around", [lambda d: Subset(d, [0, 1]), lambda d: ConcatDataset([d, Counting(0)]), Subset])
def test_set_epoch_of_a_wrapped_dataset_reaches_the_loaders(job_of, around):
    job_of()
    dataset = Counting(2)
    outer = around(dataset) if around is not Subset else Subset(Subset(dataset, [0, 1]), [1, 0])
    loader = DataLoader(outer, 2)
    dataset.set_epoch(5)
    assert batches(loader) == [[5, 5]]


def test_set_epoch_reaches_both_dataloaders_of_one_dataset(job_of):
    job_of()
    dataset = Counting(2)
    loaders = [DataLoader(dataset, 2), DataLoader(dataset, 2)]
    dataset.set_epoch(7)
    assert [batches(loader) for loader in loaders] == [[[7, 7]]] * 2


class Fractions(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor([0.1])


def test_each_dataset_keeps_its_default_dtype_on_the_loaders(job_of):
    job_of(loaders=1)
    single = DataLoader(Fractions(), 2)
    torch.set_default_dtype(torch.float64)
    try:
        double = DataLoader(Fractions(), 2)
    finally:
        torch.set_default_dtype(torch.float32)
    for loader, dtype in ((single, torch.float32), (double, torch.float64), (single, torch.float32)):
        assert next(iter(loader)).dtype == dtype
    assert torch.get_default_dtype() == torch.float32


class Drawn(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return random.random(), np.random.rand(), torch.rand(())


def seed_worker(worker):
    """As on PyTorch's page about reproducibility."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def test_seeds_set_in_worker_init_fn_do_not_affect_random_batches(job_of):
    got = []
    for loaders in (1, 3):
        job_of(loaders=loaders)
        torch.manual_seed(5)
        loader = DataLoader(Drawn(), 2, worker_init_fn=seed_worker)
        got.append([[values.tolist() for values in batch] for batch in loader])
    assert got[0] == got[1]


def made():
    return join.join()  # as an imported script does


def test_creating_a_dataset_of_mpidata_on_a_loader_is_refused(monkeypatch):
    """It would wait for a trainer that never comes."""
    said = []

    class Ends:
        def next(self, timeout_s):
            with pytest.raises(StreamError) as caught:
                made()
            said.append(str(caught.value))
            from mpidata.loading.transport import Closed

            return Closed()

    serve(Ends(), [])
    assert "This rank is a loader, which cannot create a dataset of mpidata" in said[0]


def test_definition_keeps_the_dtype_if_a_function_builds_the_dataset(monkeypatch):
    monkeypatch.setattr("mpidata.datasets.made", Fractions, raising=False)
    definition = Definition("mpidata.datasets:made", list, None, True, torch.float64)
    there = unpack_definition(memoryview(pack_definition(definition)))
    assert isinstance(there.dataset, Fractions) and there.dtype == torch.float64
