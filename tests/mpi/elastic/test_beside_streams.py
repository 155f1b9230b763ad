"""Trainers of a stream die in jobs that also have validation, scales, a budget of draws, windows or a record."""

import json
from typing import Any

import pytest
from jobs import JobFolder
from stream_job import check, draw_beside, write_job

VALIDATION = {"validate": 4, "validation": {"count": 3}}


def test_validation_is_exact_after_a_death_in_a_pass(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "validate:4"}, **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize(
    "kill", ["validation.wait:1", "validation.send:2", "validated:1", "validated:3", "8 SIGKILL", "agreed:9", "meet:1"]
)
@pytest.mark.parametrize("capacity", [20, 1000])
def test_validation_is_exact_after_a_death_near_a_pass(folder: JobFolder, kill: str, capacity: int) -> None:
    job = write_job(folder, {"2": kill}, buffer={"capacity": capacity}, **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [2], result.logs()


@pytest.mark.full
def test_validation_is_exact_after_two_deaths_in_passes(folder: JobFolder) -> None:
    job = write_job(folder, {"0": "validate:3", "2": "validated:2"}, trainers=4, **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 3])
def test_validation_is_exact_after_a_resume(folder: JobFolder, again: int) -> None:
    kills: dict[str, Any] = {"kills": {"0": "12 SIGKILL", "1": "22 SIGKILL"}, "kills_again": {"1": "validate:3"}}
    more: dict[str, Any] = {"checkpoint": {"every_s": 0.2}, "buffer": {"tail": "repeat"}}
    job = write_job(folder, at_least=2, pause_s=0.05, **more, **kills, **VALIDATION)
    result = folder.run(timeout=60)
    assert result.status == 1 and result.run is not None, result.logs()
    sets = ["--set", f"trainers.ranks={again}", "--set", "trainers.elastic.at_least=1"]
    resumed = folder.resume(result.run, *sets, timeout=60)
    check(job, resumed)
    assert resumed.summary["lost_trainers"] == [*result.summary["lost_trainers"], 1], resumed.logs()


@pytest.mark.full
@pytest.mark.parametrize("kill", ["6 SIGKILL", *(f"agree:{n}" for n in (8, 9, 30))])
def test_scales_agree_and_stay_the_same_after_a_death(folder: JobFolder, kill: str) -> None:
    job = write_job(folder, {"0": kill}, after=8, samples={"statistics": {"u": 0}})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [0], result.logs()
    assert result.run is not None
    written = json.loads((result.run / "statistics.json").read_text())
    assert sum(written["fields"]["u"]["count"]) >= 480 * 24, written


@pytest.mark.full
@pytest.mark.parametrize("kill", ["12 SIGKILL", "60 exit", "agreed:3"])
@pytest.mark.parametrize("size", [{}, {"global_batch_size": 14}], ids=["own", "all"])
def test_draw_budget_is_kept_after_a_death(folder: JobFolder, kill: str, size: dict[str, int]) -> None:
    buffer = {"policy": "reservoir", "capacity": 60, "repeats": 3.0}
    job = write_job(folder, {"1": kill}, buffer=buffer, **size)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("every", [1, 3])
def test_the_record_has_each_sample_once(folder: JobFolder, every: int) -> None:
    job = write_job(folder, {"2": "9 SIGKILL"}, record={"every": every}, **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [2], result.logs()


@pytest.mark.parametrize("stride", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("kill", ["9 SIGKILL", *(pytest.param(f"agreed:{n}", marks=pytest.mark.full) for n in (1, 30))])
def test_windows_are_exact_after_a_death(folder: JobFolder, kill: str, stride: int) -> None:
    samples = {"window": 3, "stride": stride, "run": 6}
    job = write_job(folder, {"1": kill}, samples=samples, buffer={"capacity": 60}, record={}, **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw_beside(seed))
    check(job, folder.run(timeout=100))
