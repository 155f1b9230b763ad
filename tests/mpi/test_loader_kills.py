"""Loaders are ended at random moments, in all settings: each epoch has every row once."""

from pathlib import Path

import loader_campaign
import pytest
from jobs import JobFolder

# FileDataset of parts in all formats, and DataLoader; two trainers, two loaders and a spare one.
FAST_SEED = 911


@pytest.mark.parametrize("seed", [FAST_SEED, pytest.param(4643, marks=pytest.mark.full)])
def test_two_random_loader_deaths_lose_no_row(folder: JobFolder, tmp_path: Path, seed: int) -> None:
    print(loader_campaign.draw(seed, kills=2))
    print(loader_campaign.run_draw(folder, tmp_path, seed, kills=2))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_random_loader_deaths_lose_no_row(folder: JobFolder, tmp_path: Path, seed: int) -> None:
    print(loader_campaign.draw(seed))
    print(loader_campaign.run_draw(folder, tmp_path, seed))
