"""Every element is right if arrays are a byte smaller or larger than sizes at which the code takes another path."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import thresholds
from jobs import JobFolder

from mpidata.native import constants

Build = Callable[[bool], Path]


@pytest.fixture
def build(compiled: Callable[[str], Path], carried: Callable[..., Path]) -> Build:
    return lambda is_carried: (carried if is_carried else compiled)("thresholds")


@pytest.mark.parametrize("seed", [12, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(12))])
def test_lengths_around_size_thresholds_arrive_correctly(folder: JobFolder, build: Build, seed: int) -> None:
    thresholds.run(folder, thresholds.draw_lengths(seed), build)


@pytest.mark.full
@pytest.mark.parametrize("by", thresholds.AROUND)
@pytest.mark.parametrize("of", thresholds.of_a_part(1, 1))
def test_parts_around_size_thresholds_arrive_correctly(folder: JobFolder, build: Build, of: str, by: int) -> None:
    """The part is one field, or several that have this size together, in blocks of other such sizes."""
    chance, is_large = random.Random(f"{of} {by}"), of in ("cache", "lent", "huge page")
    ranks, batch, fields = chance.choice([1, 2]), chance.choice([0, 3]), chance.choice([1, 3])
    batch, fields = (4, 1) if is_large else (batch, fields)
    part = thresholds.of_a_part(batch, ranks)[of] + by
    drawn = thresholds.draw_shape(f"{of} {by}", part, ranks, fields, batch, steps=4 if is_large else 12)
    thresholds.run(folder, drawn, build, simulations=4 if is_large else 12)


@pytest.mark.full
@pytest.mark.parametrize("most", [9, 99])  # bytes: all blocks travel with the header, which is larger, or only some do
@pytest.mark.parametrize("fewer", [0, 1])
def test_steps_with_the_largest_number_of_blocks_arrive_correctly(
    folder: JobFolder, build: Build, fewer: int, most: int
) -> None:
    thresholds.run(folder, thresholds.draw_blocks(most, constants.BLOCKS_MAX - fewer, most), build)
