"""Trainers die in jobs with solvers: the others continue, and each sample is trained on once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import JobFolder
from stream_job import POINTS, by_c_solver, check, draw, write_job


def test_job_survives_a_death_in_mid_stream(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert result.summary["batches"]["per_trainer"][1] == 10, result.summary


@pytest.mark.full
@pytest.mark.parametrize("how", ["fails", "quits"])
@pytest.mark.parametrize("spares", [0, 1])
def test_script_that_ends_in_mid_training_loses_only_its_trainer(folder: JobFolder, how: str, spares: int) -> None:
    job = write_job(folder, {"1": f"9 {how}"}, spares=spares)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS[:4])
def test_job_survives_a_death_at_any_point(folder: JobFolder, point: str) -> None:
    job = write_job(folder, {"1": f"{point}:7"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
def test_job_survives_a_death_at_the_start_of_a_checkpoint(folder: JobFolder, policy: str) -> None:
    kills = {"1": "checkpoint:2"}
    job = write_job(folder, kills, pause_s=0.05, checkpoint={"every_s": 0.1}, buffer={"policy": policy})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert [event for event in result.events() if event["event"] == "checkpoint"][1:], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS[4:6])
def test_job_survives_a_second_death_during_recovery(folder: JobFolder, point: str) -> None:
    job = write_job(folder, {"0": "2 SIGKILL", "2": f"{point}:1"}, trainers=4)
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


@pytest.mark.full
def test_job_survives_a_death_while_trainers_meet_at_the_end(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "meet:1"})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("tail", ["drop", "repeat"])
def test_job_survives_a_death_after_the_end_of_the_stream_was_announced(folder: JobFolder, tail: str) -> None:
    job = write_job(folder, {"1": "30 SIGKILL"}, pause_s=0.05, buffer={"capacity": 1000, "tail": tail})
    result = folder.run(timeout=60)
    check(job, result)
    events = [event["event"] for event in result.events()]
    assert events.count("end_of_stream") == 2 and events.count("trainer_lost") == 1, events


@pytest.mark.full
@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_job_survives_deaths_with_other_policies(folder: JobFolder, policy: str) -> None:
    job = write_job(folder, {"1": "7 SIGKILL", "2": "25 SIGKILL"}, buffer={"policy": policy, "capacity": 60})
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [1, 2], result.logs()


@pytest.mark.full
def test_job_survives_a_death_with_several_batches_per_step(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "6 SIGKILL"}, every=3)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
def test_stopped_trainer_is_killed_after_timeout_s(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGSTOP"}, timeout_s=3)
    result = folder.run(timeout=60)
    check(job, result)
    assert [event["trainer"] for event in result.events() if event["event"] == "trainer_late"] == [1]


@pytest.mark.full
def test_job_continues_for_long_after_a_death(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "5 SIGKILL"}, pause_s=0.4)
    result = folder.run(timeout=100)
    check(job, result)
    times = {event["event"]: event["time"] for event in result.events()}
    assert times["end"] - times["trainer_lost"] > 12, times


@pytest.mark.full
def test_job_survives_a_death_with_groups_of_several_ranks(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    job = write_job(folder, {"2": "9 SIGKILL"}, **by_c_solver(compiled))
    check({**job, "more": 1}, folder.run(timeout=60))


@pytest.mark.full
def test_job_survives_deaths_of_a_solver_and_a_trainer_at_the_same_time(folder: JobFolder) -> None:
    solvers = {"groups": 2, "spares": 1, "function": "functions.dies_at_times:simulate"}
    job = write_job(folder, {"0": "6 SIGKILL"}, solvers=solvers)
    result = folder.run(timeout=60)
    check(job, result)
    events = [event["event"] for event in result.events()]
    assert events.count("group_lost") == 1 and events.count("trainer_lost") == 1, events


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 3])
def test_job_with_fewer_trainers_than_at_least_ends_and_can_be_resumed(folder: JobFolder, again: int) -> None:
    kills = {"0": "12 SIGKILL", "1": "22 SIGKILL"}
    more = {"at_least": 2, "pause_s": 0.05, "checkpoint": {"every_s": 0.2}}
    job = write_job(folder, kills, kills_again={"1": "30 SIGKILL"}, **more)
    result = folder.run(timeout=60)
    assert result.status == 1 and result.run is not None, result.logs()
    sets = ["--set", f"trainers.ranks={again}", "--set", "trainers.elastic.at_least=1"]
    resumed = folder.resume(result.run, *sets, timeout=60)
    check(job, resumed)
    assert result.summary["lost_trainers"] == [0] and resumed.summary["lost_trainers"] == [0, 1], resumed.logs()
    assert resumed.summary["run_again"] > result.summary["run_again"] > 0, resumed.summary
    assert [event for event in resumed.events() if event["event"] == "resume" and event["checkpoint"]], resumed.logs()


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(30)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw(seed))
    check(job, folder.run(timeout=100))
