"""Spares and other numbers of trainers in jobs with solvers: each sample is trained on once."""

import pytest
from exact_job import books
from jobs import JobFolder
from stream_job import check, sizes, write_job


def test_a_spare_takes_the_place_of_a_trainer_that_has_died(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"}, trainers=2, spares=1, pause_s=0.02)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [2], result.logs()
    assert [len(of) for of in sizes(job, result).values()][-1] == 2, result.logs()
    changes = [line for line in books(result, 3)[2] if line.get("joined")]
    assert [change["joined"] for change in changes] == [[1]], changes
