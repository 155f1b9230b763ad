"""Trainers that die in jobs with solvers: the others go on, and each sample is trained on once."""

import pytest
from jobs import JobFolder
from stream_job import check, write_job

POINTS = ["backward", "reduced", "agree", "agreed", "regroup", "regrouped", "meet"]


def test_a_death_in_mid_stream(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.parametrize("point", POINTS[:4])
def test_a_death_at_a_named_point(folder: JobFolder, point: str) -> None:
    job = write_job(folder, {"1": f"{point}:7"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.parametrize("point", POINTS[4:6])
def test_a_second_death_while_the_first_is_dealt_with(folder: JobFolder, point: str) -> None:
    job = write_job(folder, {"0": "2 SIGKILL", "2": f"{point}:1"}, trainers=4)
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


def test_a_death_as_the_trainers_meet_at_the_end(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "meet:1"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.parametrize("tail", ["drop", "repeat"])
def test_a_death_when_the_end_of_the_stream_was_told(folder: JobFolder, tail: str) -> None:
    job = write_job(folder, {"1": "30 SIGKILL"}, pause_s=0.05, buffer={"capacity": 1000, "tail": tail})
    result = folder.run(timeout=60)
    check(job, result)
    events = [event["event"] for event in result.events()]
    assert events.count("end_of_stream") == 2 and events.count("trainer_lost") == 1, events


@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_other_policies(folder: JobFolder, policy: str) -> None:
    job = write_job(folder, {"1": "7 SIGKILL", "2": "25 SIGKILL"}, buffer={"policy": policy, "capacity": 60})
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [1, 2], result.logs()
