"""Loaders are ended at random moments, in all settings: each epoch has every row once."""

from pathlib import Path

import loader_campaign
import pytest
from jobs import JobFolder

# FileDataset with parts in all formats, two trainers and spares.
FAST_SEED = 5821


def check(folder: JobFolder, built: Path, seed: int) -> None:
    print(loader_campaign.draw(seed))
    print(loader_campaign.run_draw(folder, built, seed))


def test_a_draw_of_the_campaign(folder: JobFolder, tmp_path: Path) -> None:
    check(folder, tmp_path, FAST_SEED)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_draws_of_the_campaign(folder: JobFolder, tmp_path: Path, seed: int) -> None:
    check(folder, tmp_path, seed)
