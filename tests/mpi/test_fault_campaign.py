"""Something goes wrong in jobs drawn at random, at any moment, and in their resumes."""

from pathlib import Path

import fault_campaign
import pytest
from jobs import JobFolder

# A part that kills who counts it; a rank killed with its mpidata-rank, and a refused resume.
FAST_SEEDS = (45, 11)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    fault_campaign.build(folder)
    return folder


@pytest.mark.parametrize("seed", FAST_SEEDS)
def test_a_draw_of_the_campaign(folder: JobFolder, built: Path, seed: int) -> None:
    print(fault_campaign.draw(seed))
    print(fault_campaign.run_draw(folder, built, seed))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_draws_of_the_campaign(folder: JobFolder, built: Path, seed: int) -> None:
    print(fault_campaign.draw(seed))
    print(fault_campaign.run_draw(folder, built, seed))
