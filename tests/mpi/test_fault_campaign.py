"""Random jobs in which something goes wrong at any moment, and their resumes."""

from pathlib import Path

import fault_campaign
import pytest
from jobs import JobFolder

# A rank killed with its mpidata-rank, and a refused resume; in full also a part that kills the loader that counts it.
# In 11, a spawned rank is killed in MPI_Init, and Open MPI may make no communicator while it waits for that rank.
FAST_SEED, MORE_SEEDS = 30, (45, *range(20))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    fault_campaign.build(folder)
    return folder


@pytest.mark.parametrize("seed", [FAST_SEED, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_job_with_a_random_fault_completes_or_reports_the_cause(folder: JobFolder, built: Path, seed: int) -> None:
    print(fault_campaign.draw(seed))
    print(fault_campaign.run_draw(folder, built, seed))
