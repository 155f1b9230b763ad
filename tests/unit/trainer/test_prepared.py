"""Validation samples in batches that accelerate can join."""

from collections import Counter

import pytest

from mpidata.trainer.frameworks.preparation import Batches


@pytest.mark.parametrize("trainers", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [0, 1, 4, 20, 21, 40, 43])
@pytest.mark.parametrize("batch_size", [1, 8, 50])
def test_joined_batches_contain_each_sample_once(n: int, trainers: int, batch_size: int) -> None:
    of_all = [Batches(n, batch_size, trainer, trainers, drop_last=False) for trainer in range(trainers)]
    steps = list(zip(*of_all, strict=True))
    joined: list[int] = []
    for number, step in enumerate(steps, start=1):
        assert len({len(batch) for batch in step}) == 1 and 0 < len(step[0]) <= batch_size
        rows = [index for batch in step for index in batch]
        # accelerate cuts the last batch to the rest of a length, divided by the batch size of all trainers.
        real = of_all[0].real_in_last_step % (of_all[0].batch_size * of_all[0].num_processes)
        joined += rows[:real] if number == len(steps) and real else rows
    assert Counter(joined) == Counter(range(n))
    assert all(len(batches) == len(steps) for batches in of_all)
    sizes = [len(step[0]) for step in steps]
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_drop_last_leaves_out_incomplete_batches() -> None:
    of_all = [list(Batches(21, 4, trainer, 2, drop_last=True)) for trainer in range(2)]
    assert {len(batch) for batches in of_all for batch in batches} == {4}
    assert sorted(index for batches in of_all for batch in batches for index in batch) == list(range(16))
