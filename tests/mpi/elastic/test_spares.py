"""Spares that take the place of a trainer that has died: rows and weights stay exact."""

from exact_job import check, run
from jobs import JobFolder

ROWS = [40, 33, 27]


def _job(kills: dict[str, str], trainers: int = 2, spares: int = 1, **options: object) -> dict:
    given = {"batch_size": 4, "epochs": 2, "shuffle": "rows", "drop_last": False, "kills": kills, **options}
    return {"rows": ROWS, "trainers": trainers, "spares": spares, "loaders": 1, "options": given}


def test_a_spare_takes_the_place_of_a_trainer_that_has_died(folder: JobFolder) -> None:
    job = _job({"1": "3 SIGKILL"})
    result = run(folder, job)
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [2], result.logs()
