"""Random jobs of the campaign on carried programs."""

import carried_campaign
import pytest
from jobs import JobFolder


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_random_deaths_of_carried_programs_lose_no_sample(
    folder: JobFolder, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    built = tmp_path_factory.mktemp("campaign")
    carried_campaign.build(built)
    print(carried_campaign.draw(seed))
    print(carried_campaign.run_draw(folder, built, seed))
