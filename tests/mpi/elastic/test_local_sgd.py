"""LocalSGD where trainers are uneven, die, come and leave: each sample counts once, the weights are the same on all."""

import pytest
from jobs import JobFolder
from local_job import check, run


def test_a_death_in_an_average_and_a_spare(folder: JobFolder) -> None:
    job, result = run(folder, {"1": "average:4"}, spares=1, joins=1, pauses_s={"2": 0.02})
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [3], result.logs()


def test_a_death_between_averages_of_a_stream(folder: JobFolder) -> None:
    job, result = run(folder, {"0": "7 SIGKILL"}, "stream", every=4, pauses_s={"2": 0.01}, outer=True)
    check(job, result)
    assert result.summary["lost_trainers"] == [0], result.logs()


def test_trainers_that_stop_early_average_until_all_are_done(folder: JobFolder) -> None:
    job, result = run(folder, {}, elastic=False, every=4, stops={"0": 2, "2": 5}, trainers=3)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    check_alike = [lines[-1] for lines in result.lines("book-0.jsonl")]
    assert check_alike
