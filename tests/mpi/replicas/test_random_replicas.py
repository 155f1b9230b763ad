"""Replicas of several ranks: each element of random fields is right on each rank, each sample comes once over all."""

from typing import Any

import pytest
import random_fields
from jobs import JobFolder

# The seeds cover each policy, windows, packed, padded and nested batches, constants apart and in batches, optional
# fields, spawned groups, carried programs, statistics, records.
FAST_SEEDS, MORE_SEEDS = (8,), (4, 12, 39, 57, 60, 70)


def write(folder: JobFolder, seed: int, each: int, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the job of a seed whose trainers are replicas of `each` ranks."""
    keys, spec = random_fields.write(folder, seed, **how)
    trainers = keys["trainers"]["ranks"]
    folder.job(**{**keys, "trainers": {**keys["trainers"], "ranks": trainers * each, "ranks_per_replica": each}})
    return keys, spec


def check_mates(folder: JobFolder, trainers: int, each: int) -> None:
    """The ranks of a replica received the same; rename the first ranks' notes to those of trainers."""
    notes = folder.read_notes("seen", trainers * each)
    for rank, note in enumerate(notes):
        assert note == notes[rank - rank % each], rank
    for trainer in range(trainers):
        (folder.path / f"seen-{trainer * each}.json").rename(folder.path / f"seen-{trainer}.json")


@pytest.mark.parametrize("seed", [*FAST_SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_random_fields_on_replicas(folder: JobFolder, seed: int) -> None:
    each = 2 + seed % 2
    keys, spec = write(folder, seed, each)
    print(keys)
    result = folder.run(timeout=120)
    assert result.status == 0, result.logs()
    check_mates(folder, keys["trainers"]["ranks"], each)
    random_fields.check(folder, result, keys, spec)
