"""Trainers that die at any point: the others go on, each row is trained once an epoch, and all make the same steps."""

import pytest
from exact_job import POINTS, WAYS, check, draw, run
from jobs import JobFolder

ROWS = [40, 33, 27]


def _job(kills: dict[str, str], trainers: int = 3, **options: object) -> dict:
    given = {"batch_size": 4, "epochs": 2, "shuffle": "rows", "drop_last": False, "kills": kills, **options}
    return {"rows": ROWS, "trainers": trainers, "loaders": 1, "options": given}


@pytest.mark.parametrize("point", POINTS[:5])
def test_a_death_at_a_named_point(folder: JobFolder, point: str) -> None:
    job = _job({"1": f"{point}:3"})
    result = run(folder, job)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.parametrize("point", POINTS[5:])
def test_a_second_death_while_the_first_is_dealt_with(folder: JobFolder, point: str) -> None:
    job = _job({"0": "2 SIGKILL", "2": f"{point}:1"}, trainers=4)
    result = run(folder, job)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


@pytest.mark.parametrize("how", WAYS)
def test_any_way_to_die(folder: JobFolder, how: str) -> None:
    job = _job({"2": f"5 {how}"})
    check(job, run(folder, job))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(30)])
def test_deaths_drawn_at_random(folder: JobFolder, seed: int) -> None:
    job = draw(seed)
    check(job, run(folder, job))
