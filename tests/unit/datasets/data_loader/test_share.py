"""share=True: each index once per epoch over all trainers, and equally many batches on each."""

import itertools

import pytest
import torch
from torch.utils.data import DistributedSampler

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.datasets.epochs.shares import Shares
from mpidata.errors import StreamError


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("size", "trainers"), list(itertools.product([1, 3, 8], [1, 2, 5])))
def test_shares_are_exact_and_even(size, trainers, drop_last):
    for n in range(trainers, 4 * size * trainers + 2):
        shares = Shares(n, size, trainers, drop_last)
        dealt = [[shares.places(t, b) for t in range(trainers)] for b in range(shares.batches)]
        everything = [p for batch in dealt for places in batch for p in places]
        whole = size * trainers
        assert everything == list(range(n // whole * whole if drop_last else n))
        lengths = [[len(places) for places in batch] for batch in dealt]
        assert all(set(lengths_) == {size} for lengths_ in lengths[:-1])
        assert not lengths or (min(lengths[-1]) >= 1 and max(lengths[-1]) <= min(lengths[-1]) + 1 <= size + 2)
        assert max((max(lengths_) for lengths_ in lengths), default=0) <= size + 1


def test_fewer_samples_than_trainers_are_refused():
    with pytest.raises(StreamError, match="3 rows cannot be divided among 4 trainers"):
        Shares(3, 8, 4, False)


def epoch_of(job, trainers, size, n=103, **arguments):
    """Return the global batches of two epochs."""
    batches = []
    for trainer in range(trainers):
        job.be(trainer)
        loader = DataLoader(range(n), batch_size=size, share=True, **arguments)
        batches.append([batch.tolist() for _ in range(2) for batch in loader])
        assert len(batches[-1]) == 2 * len(loader)
    return [sum(together, []) for together in zip(*batches, strict=True)]


def test_numbers_of_loaders_and_trainers_do_not_change_the_order(job_of):
    orders = [
        epoch_of(job_of(loaders, trainers), trainers, size, shuffle=True)
        for loaders, trainers, size in [(1, 1, 8), (3, 2, 4), (5, 4, 2)]
    ]
    assert orders[0] == orders[1] == orders[2]
    half = len(orders[0]) // 2
    first, second = sum(orders[0][:half], []), sum(orders[0][half:], [])
    assert sorted(first) == sorted(second) == list(range(103)) and first != second


def test_without_shuffle_the_order_is_that_of_the_dataset(job_of):
    assert sum(epoch_of(job_of(2, 2), 2, 5), []) == [*range(103), *range(103)]


def test_shuffle_seed_comes_from_the_generator_or_the_job(job_of):
    def order(seed):
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return epoch_of(job_of(1, 1), 1, 4, shuffle=True, generator=generator)

    assert order(1) == order(1) != order(2) and order(7) == order(None)  # the job's seed is 7


def test_frameworks_do_not_divide_a_shared_loader_again(job_of):
    job_of(trainers=2)
    loader = DataLoader(range(103), batch_size=8, share=True, shuffle=True)
    assert isinstance(loader.sampler, DistributedSampler) and (loader.batch_size, loader.drop_last) == (8, False)
    list(loader)
    second = [batch.tolist() for batch in loader]
    assert len(loader.sampler) == sum(len(batch) for batch in second)
    loader.sampler.set_epoch(1)
    assert [batch.tolist() for batch in loader] == second
    assert loader._is_accelerate_prepared
    with pytest.raises(StreamError, match="give share=True"):
        _ = DataLoader(range(103))._is_accelerate_prepared
