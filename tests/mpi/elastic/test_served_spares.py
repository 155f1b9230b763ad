"""Spares with parameter servers replace trainers that have died, and join and leave by `mpidata scale`."""

from typing import Any

import pytest
from exact_job import SECOND_DEATHS
from jobs import JobFolder, Result, sets
from scaling import run_meanwhile, scale_up_and_down
from served_job import check, draw_with_spares, write_job


def run(folder: JobFolder, kills: dict[str, str], data: str = "files", spares: int = 1, **options: Any) -> Result:
    given = {"data": data, "staleness": 4, "elastic": True, "trainers": 3, "spares": spares, "joins": 1} | options
    job = write_job(folder, kills=kills, **given)
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    check(job, result)
    return result


def test_spare_replaces_a_dead_trainer(folder: JobFolder) -> None:
    result = run(folder, {"1": "push:9"}, epochs=3)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("staleness", [0, 3])
@pytest.mark.parametrize("data", ["files", "stream"])
@pytest.mark.parametrize("kill", ["push:2", "push:16", "pull:9", "8 SIGKILL", "checkpoint:1", "agree:1"])
def test_job_survives_a_death_at_any_point(folder: JobFolder, kill: str, data: str, staleness: int) -> None:
    pauses_s = {"0": 0.02, "1": 0.03, "2": 0.02}
    result = run(folder, {"0": kill}, data, staleness=staleness, every_s=0.2, pauses_s=pauses_s, epochs=3)
    joined = result.summary.get("joined_trainers")
    if joined is None and (kill, data) == (
        "agree:1",
        "stream",
    ):  # it may be the last agreement: all samples are trained
        assert result.summary["batches"]["per_trainer"] == [40, 40, 40, 0], result.logs()
    else:
        assert joined == [3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("data", ["files", "stream"])
@pytest.mark.parametrize(("kills", "lost"), SECOND_DEATHS)
def test_job_survives_a_second_death_while_a_spare_joins(
    folder: JobFolder, kills: dict[str, str], lost: list[int], data: str
) -> None:
    pauses_s = {"0": 0.02, "1": 0.03, "2": 0.02}
    result = run(folder, {"2": "4 SIGKILL", **kills}, data, spares=2, epochs=3, pauses_s=pauses_s)
    assert sorted(result.summary["lost_trainers"]) == lost, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_spare_joins_with_other_policies(folder: JobFolder, policy: str) -> None:
    result = run(folder, {"0": "push:9"}, "stream", buffer={"policy": policy, "capacity": 60})
    assert result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 4])
def test_job_resumes_from_a_checkpoint_with_a_joined_spare(folder: JobFolder, again: int) -> None:
    given: dict[str, Any] = {"data": "stream", "staleness": 3, "elastic": {"at_least": 2}, "trainers": 3, "spares": 1}
    kills = {"1": "6 SIGKILL", "0": "30 SIGKILL", "2": "34 SIGKILL"}
    pauses_s = {"0": 0.05, "1": 0.04, "2": 0.06, "3": 0.03}
    job = write_job(folder, kills=kills, joins=1, every_s=0.2, pauses_s=pauses_s, **given)
    result = folder.run(timeout=120)
    assert result.status == 1 and result.run is not None, result.logs()
    assert result.summary["joined_trainers"] == [3], result.logs()
    changes = sets(f"trainers.ranks={again}", "trainers.spares=0", "trainers.elastic.at_least=1")
    resumed = folder.resume(result.run, *changes, timeout=120)
    check({**job, "again": again}, resumed)


@pytest.mark.full
@pytest.mark.parametrize("data", ["files", "stream"])
def test_trainers_join_and_retire_while_the_job_runs(folder: JobFolder, data: str) -> None:
    given: dict[str, Any] = {"data": data, "elastic": True, "trainers": 2, "spares": 2, "staleness": 2}
    job = write_job(folder, joins=2, retires=1, every_s=0.3, **given)
    result = run_meanwhile(folder, lambda: scale_up_and_down(folder))
    check(job, result)
    assert sorted(result.summary["joined_trainers"]) == [2, 3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("seed", [*range(12), 1993516756])  # the last one has a checkpoint at the end of an epoch
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw_with_spares(seed))
    result = folder.run(timeout=120)
    folder.assert_nothing_left()
    check(job, result)
