"""Every element of fields drawn at random is right, and each sample comes once."""

import pytest
import random_fields
from jobs import JobFolder

# Together: 1, 2 and 4 ranks, 1 to 3 trainers, each policy, windows, split, spawn, carried, statistics, indices from 0
# and 1, optional.
FAST_SEEDS = (0, 5, 8, 11, 12, 22)


@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_random_fields(folder: JobFolder, seed: int) -> None:
    keys, spec = random_fields.write(folder, seed)
    print(keys)
    random_fields.check(folder, folder.run(timeout=120), keys, spec)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30, 50))
def test_more_random_fields(folder: JobFolder, seed: int) -> None:
    keys, spec = random_fields.write(folder, seed)
    print(keys)
    random_fields.check(folder, folder.run(timeout=120), keys, spec)
