"""Batches that all trainers draw together: their sizes, and the weights of gradients that follow."""

import warnings

import pytest
import torch.distributed as dist
from fake_library import make_plan, numbers

from mpidata.errors import StreamError
from mpidata.trainer.batch_count import expected_batches
from mpidata.trainer.dataset import MPIStreamDataset
from mpidata.trainer.shares.grouping import BySize, Grouping
from mpidata.trainer.shares.share import Share


def sizes(total, trainer, trainers):
    """Return some batch sizes, computed as in c_api/src/stream/shares/shares.h."""
    drawn = [(batch * total + trainers - 1 - trainer) // trainers for batch in range(40)]
    return [after - before for before, after in zip(drawn, drawn[1:], strict=False)]


def test_remainder_of_a_global_batch_rotates_among_trainers():
    assert [sizes(64, trainer, 3)[:4] for trainer in range(3)] == [[22, 21, 21, 22], [21, 22, 21, 21], [21, 21, 22, 21]]


@pytest.mark.parametrize(("total", "trainers"), [(64, 3), (5, 4), (7, 7), (8, 1), (12, 4)])
def test_grouping_counts_the_batches_that_samples_fill_and_need(total, trainers):
    grouping = Grouping(total=total)
    for trainer in range(trainers):
        own, samples = sizes(total, trainer, trainers), 0
        for batch, size in enumerate(own[:30]):
            assert grouping.filled(samples, trainer, trainers, whole=True) == batch
            assert grouping.filled(samples + size - 1, trainer, trainers, whole=True) == batch
            assert grouping.filled(samples + 1, trainer, trainers, whole=False) == batch + 1
            samples += size
    assert grouping.largest(trainers) == max(sizes(total, 0, trainers)) and grouping.drawn_by_all(trainers) == total


@pytest.mark.parametrize(("tail", "batches"), [("drop", 14), ("repeat", 15)])
def test_expected_batches_of_a_global_batch_size(tail, batches):
    plan = make_plan(trainers=3, simulations=9, tail=tail, policy="fifo")  # 33 samples for each trainer
    assert expected_batches(plan, 11, Grouping(total=7)) == batches  # of 99 samples
    assert expected_batches(plan, 11, Grouping(total=9)) == expected_batches(plan, 11, Grouping(3)) == 11


def test_expected_batches_of_a_draw_budget():
    plan = make_plan(trainers=3, simulations=9, policy="reservoir", repeats=2.0)
    assert expected_batches(plan, 11, Grouping(total=7)) == 198 // 7


def test_batch_size_with_global_batch_size_is_refused(library):
    with pytest.raises(StreamError, match=r"batch_size=4, for each trainer, and global_batch_size=12, for all"):
        MPIStreamDataset(4, global_batch_size=12)
    with pytest.raises(StreamError, match=r"global_batch_size=0 is not a positive integer"):
        MPIStreamDataset(global_batch_size=0)


def test_job_is_joined_before_arguments_are_refused(library, monkeypatch):
    joined = []
    monkeypatch.setattr("mpidata.trainer.dataset.job.join", lambda: joined.append(1))
    with pytest.raises(StreamError, match=r"batch_size=0 is not a positive integer"):
        MPIStreamDataset(batch_size=0)
    assert joined == [1]


def test_second_dataset_with_another_batch_size_is_refused(library):
    MPIStreamDataset(global_batch_size=12)
    with pytest.raises(StreamError, match=r"MPIStreamDataset\(batch_size=12\) .* already has global_batch_size=12"):
        MPIStreamDataset(12)


def test_each_batch_has_the_size_given_by_the_library(library):
    library.shares = [(4, 3), (3, 3), (5, 2)]
    stream = MPIStreamDataset(global_batch_size=10, batches_per_epoch=2)
    assert "start together 10" in library.calls and stream.batch_size is None
    assert [numbers(batch) for batch in stream] == [[0, 1, 2, 3], [4, 5, 6]]
    assert stream._trainer.share.take() == pytest.approx(7 * 3 / 10)
    assert [numbers(batch) for batch in stream] == [[7, 8, 9, 10, 11]]
    assert stream._trainer.share.take() == 1.0


def test_memory_of_the_last_two_batch_sizes_is_reused():
    made = []
    memory = BySize(lambda size: made.append(size) or size, 4)
    assert [memory.of(size) for size in (4, 3, 4, 3, 8, 3, 8)] == [4, 3, 4, 3, 8, 3, 8]
    assert made == [4, 3, 8]  # those of the last two sizes are kept


def test_gradient_weight_covers_samples_drawn_since_the_last_weight():
    share = Share()
    assert share.take() == 1.0  # batches are not drawn together
    share.total = 64
    share.took(22, 3)
    assert share.take() == 22 * 3 / 64 == share.take()
    share.took(32, 2)
    assert share.take() == 1.0  # exactly
    share.took(21, 3)
    share.took(22, 3)
    assert share.take() == pytest.approx(43 * 3 / 64)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("total", "trainers", "warns"), [(64, 3, True), (64, 2, False)])
def test_averaging_unequal_batches_without_weights_is_warned_about(monkeypatch, weighed, total, trainers, warns):
    for name in ("is_available", "is_initialized"):
        monkeypatch.setattr(dist, name, lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: trainers)
    share = Share()
    share.total, share.weighed = total, weighed
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            share.took(total // trainers, trainers)
    assert [("Use mpidata.DistributedDataParallel" in str(one.message)) for one in caught] == [True] * (
        warns and not weighed
    )
