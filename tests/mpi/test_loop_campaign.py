"""Random jobs of the loop campaign: cancels, versions, answers, learners, and five deaths in each."""

from pathlib import Path

import loop_campaign
import pytest
from jobs import JobFolder

SEEDS = [1, 3, 4, 9, 11, 14, 19, 21, 22, 23, 24, 27, 28, 29, 32, 38, 42, 47, 48, 56, 59, 62, 63, 66, 104, 124]
SHORT = 1  # in the fast suite


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    loop_campaign.build(folder)
    return folder


@pytest.mark.timeout(600)  # some are replayed
@pytest.mark.parametrize("seed", [pytest.param(n, marks=[] if n == SHORT else pytest.mark.full) for n in SEEDS])
def test_cancels_versions_and_answers_are_correct_despite_deaths(folder: JobFolder, built: Path, seed: int) -> None:
    print(loop_campaign.draw(seed))
    print(loop_campaign.run_draw(folder, built, seed))
