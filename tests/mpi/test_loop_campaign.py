"""Draws of the campaign of the loop: cancels, versions and deaths."""

from pathlib import Path

import loop_campaign
import pytest
from jobs import JobFolder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    loop_campaign.build(folder)
    return folder


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 13))
def test_a_draw(folder: JobFolder, built: Path, seed: int) -> None:
    print(loop_campaign.draw(seed))
    print(loop_campaign.run_draw(folder, built, seed))
