"""Draws of the campaign of the loop: cancels, versions, answers, learners, and five deaths in each."""

from pathlib import Path

import loop_campaign
import pytest
from jobs import JobFolder

SHORT = 13  # of the fast suite


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    loop_campaign.build(folder)
    return folder


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[] if n == SHORT else pytest.mark.full) for n in range(1, 21)])
def test_a_draw(folder: JobFolder, built: Path, seed: int) -> None:
    print(loop_campaign.draw(seed))
    print(loop_campaign.run_draw(folder, built, seed))
