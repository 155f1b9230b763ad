"""Trainers that die in jobs with solvers: the others go on, and each sample is trained on once."""

from jobs import JobFolder
from stream_job import check, write_job


def test_a_death_in_mid_stream(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
