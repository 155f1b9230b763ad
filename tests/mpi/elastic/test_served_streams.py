"""Parameter servers with a stream of solvers: what a dead trainer had not pushed is simulated again."""

from typing import Any

import pytest
from jobs import JobFolder
from served_job import check, draw, write_job


def run(folder: JobFolder, kills: dict[str, str], trainers: int = 3, **options: Any) -> None:
    given = {"data": "stream", "staleness": 4, "elastic": True, "trainers": trainers} | options
    job = write_job(folder, kills=kills, **given)
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == sorted(map(int, kills)), result.logs()


def test_unpushed_samples_of_a_dead_trainer_are_simulated_again(folder: JobFolder) -> None:
    run(folder, {"1": "push:15"}, pauses_s={"0": 0.01})


@pytest.mark.full
@pytest.mark.parametrize("staleness", [0, 3])
@pytest.mark.parametrize("kill", ["push:2", "push:16", "pull:9", "8 SIGKILL", "checkpoint:1", "settle:1", "meet:1"])
def test_job_survives_a_death_at_any_point(folder: JobFolder, kill: str, staleness: int) -> None:
    run(folder, {"0": kill}, staleness=staleness, every_s=0.2, pauses_s={"0": 0.02, "1": 0.03, "2": 0.02})


@pytest.mark.full
@pytest.mark.parametrize("point", ["regroup", "regrouped", "agree"])
def test_job_survives_a_second_death_during_recovery(folder: JobFolder, point: str) -> None:
    run(folder, {"1": "5 SIGKILL", "2": f"{point}:1"}, trainers=4)


@pytest.mark.full
@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_job_survives_deaths_with_other_policies(folder: JobFolder, policy: str) -> None:
    run(folder, {"0": "push:9", "2": "20 SIGKILL"}, buffer={"policy": policy, "capacity": 60})


@pytest.mark.full
def test_job_survives_a_death_in_a_large_push_to_several_servers(folder: JobFolder) -> None:
    run(folder, {"2": "push:20"}, servers=3, staleness=1, width=60_000)


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 3])
def test_job_resumes_after_deaths(folder: JobFolder, again: int) -> None:
    kills, kills_again = {"1": "12 SIGKILL", "0": "28 SIGKILL"}, {"1": "9 SIGKILL"}
    pauses_s = {"0": 0.05, "1": 0.04, "2": 0.06}
    job = write_job(
        folder,
        elastic={"at_least": 2},
        trainers=3,
        data="stream",
        staleness=3,
        every_s=0.2,
        kills=kills,
        kills_again=kills_again,
        pauses_s=pauses_s,
    )
    result = folder.run(timeout=60)
    assert result.status == 1 and result.run is not None, result.logs()
    sets = ["--set", f"trainers.ranks={again}", "--set", "trainers.elastic.at_least=1"]
    resumed = folder.resume(result.run, *sets, timeout=60)
    check({**job, "again": again}, resumed)
    assert resumed.summary["lost_trainers"] == [*result.summary["lost_trainers"], 1], resumed.logs()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(12))
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw(seed))
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    check(job, result)
