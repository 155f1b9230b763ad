"""Spares join and trainers retire in jobs that also have validation, scales, a budget of draws, windows or a record."""

from typing import Any

import pytest
from exact_job import SECOND_DEATHS, books
from jobs import JobFolder
from scaling import run_meanwhile, scale_up_and_down
from stream_job import check, draw_beside_spares, trained, write_job

VALIDATION: dict[str, Any] = {"validate": 4, "validation": {"count": 3}}


def join_and_check(folder: JobFolder, kills: dict[str, str], **keys: Any) -> None:
    """Run a job of two trainers in which one dies and a spare takes its place."""
    job = write_job(folder, kills, trainers=2, spares=1, pause_s=0.02, **keys)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()


def scale_and_check(folder: JobFolder, **keys: Any) -> None:
    """Run a job with two trainers, then four, then three."""
    job = write_job(folder, {}, trainers=2, spares=2, joins=2, retires=1, **keys)
    result = run_meanwhile(folder, lambda: scale_up_and_down(folder))
    check(job, result)
    assert {line["end"] for lines in books(result, 4) for line in lines if "end" in line} == {3}, result.logs()


@pytest.mark.parametrize("every", [1, pytest.param(3, marks=pytest.mark.full)])
def test_the_record_has_each_sample_once(folder: JobFolder, every: int) -> None:
    join_and_check(folder, {"1": "9 SIGKILL"}, record={"every": every}, **VALIDATION)


@pytest.mark.full
def test_record_is_exact_when_trainers_join_and_retire(folder: JobFolder) -> None:
    scale_and_check(folder, record={})


def windows(stride: int = 1, run: int = 6, **buffer: Any) -> dict[str, Any]:
    """Return the keys of a job whose samples are windows of three steps."""
    return {"samples": {"window": 3, "stride": stride, "run": run}, "buffer": {"capacity": 60, **buffer}}


@pytest.mark.parametrize("stride", [1, pytest.param(2, marks=pytest.mark.full)])
def test_windows_are_exact_when_a_spare_joins(folder: JobFolder, stride: int) -> None:
    join_and_check(folder, {"1": "9 SIGKILL"}, record={}, **windows(stride), **VALIDATION)


@pytest.mark.full
@pytest.mark.parametrize("size", [{}, {"global_batch_size": 14}], ids=["own", "all"])
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_windows_are_exact_with_each_policy(folder: JobFolder, policy: str, tail: str, size: dict[str, int]) -> None:
    beside = {"record": {}, **VALIDATION} if tail == "drop" else {}
    join_and_check(folder, {"0": "9 SIGKILL"}, **windows(2, 4, policy=policy, tail=tail, capacity=90), **size, **beside)


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_windows_are_exact_when_trainers_join_and_retire(folder: JobFolder, policy: str) -> None:
    scale_and_check(folder, record={}, checkpoint={"every_s": 0.3}, **windows(2, policy=policy), **VALIDATION)


@pytest.mark.full
@pytest.mark.parametrize(("kills", "lost"), SECOND_DEATHS)
def test_windows_are_exact_after_a_second_death_while_a_spare_joins(
    folder: JobFolder, kills: dict[str, str], lost: list[int]
) -> None:
    kills = {"2": "4 SIGKILL", **kills}
    job = write_job(folder, kills, trainers=3, spares=2, pause_s=0.05, **windows(), **VALIDATION)
    result = folder.run(timeout=60)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == lost, result.logs()


@pytest.mark.full
def test_draw_budget_of_windows_is_kept_when_a_spare_joins(folder: JobFolder) -> None:
    join_and_check(folder, {"1": "12 SIGKILL"}, **windows(policy="reservoir", repeats=3.0))


@pytest.mark.full
@pytest.mark.parametrize("after", [8, 40])
def test_scales_of_windows_agree_when_a_spare_joins(folder: JobFolder, after: int) -> None:
    keys = windows()
    keys["samples"]["statistics"] = {"u": 0}
    join_and_check(folder, {"1": "12 SIGKILL"}, after=after, **keys)


REPEATS: dict[str, Any] = {"buffer": {"policy": "reservoir", "capacity": 60, "repeats": 3.0}}


@pytest.mark.full
@pytest.mark.parametrize("second", [{}, {"0": "60 SIGKILL"}])
@pytest.mark.parametrize("size", [{}, {"global_batch_size": 14}])
def test_draw_budget_is_kept_when_a_spare_joins(
    folder: JobFolder, size: dict[str, int], second: dict[str, str]
) -> None:
    join_and_check(folder, {"1": "12 SIGKILL", **second}, **REPEATS, **size)


@pytest.mark.full
def test_draw_budget_is_kept_when_trainers_join_and_retire(folder: JobFolder) -> None:
    scale_and_check(folder, **REPEATS)


@pytest.mark.full
@pytest.mark.parametrize("after", [8, 60])
def test_scales_agree_when_a_spare_joins(folder: JobFolder, after: int) -> None:
    join_and_check(folder, {"1": "12 SIGKILL"}, after=after, samples={"statistics": {"u": 0}})


@pytest.mark.full
def test_unused_spare_leaves_cleanly(folder: JobFolder) -> None:
    job = write_job(folder, {}, trainers=2, spares=1, after=8, samples={"statistics": {"u": 0}})
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["status"] == "complete" and "joined_trainers" not in result.summary, result.logs()


@pytest.mark.full
def test_scales_agree_when_trainers_join_and_retire(folder: JobFolder) -> None:
    scale_and_check(folder, after=30, samples={"statistics": {"u": 0}})


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
def test_joined_spares_use_the_scales_of_other_trainers_from_their_first_batch(folder: JobFolder, policy: str) -> None:
    keys: dict[str, Any] = {"after": 1000, "samples": {"statistics": {"u": 0}}, "buffer": {"policy": policy}}
    job = write_job(folder, {}, trainers=2, spares=2, joins=2, **keys)
    result = run_meanwhile(folder, lambda: scale_up_and_down(folder, down=False))
    trained(job, result)
    known: dict[int, list[Any]] = {}
    for lines in books(result, 4):
        for line in lines:
            if "scales" in line:
                known.setdefault(line["at"], []).append(line["scales"])
    assert {len(scales) for scales in known.values()} == {2, 4}, result.logs()
    assert all(of == scales[0] for scales in known.values() for of in scales), known


def test_validation_is_exact_when_a_spare_joins(folder: JobFolder) -> None:
    join_and_check(folder, {"1": "9 SIGKILL"}, **VALIDATION)


@pytest.mark.full
@pytest.mark.parametrize("point", ["40 SIGKILL", "validate:12", "validated:9", "validation.send:9"])
def test_joined_spare_validates_on_the_samples_of_a_dead_trainer(folder: JobFolder, point: str) -> None:
    join_and_check(folder, {"1": "9 SIGKILL", "0": point}, **VALIDATION)


@pytest.mark.full
def test_validation_is_exact_when_trainers_join_and_retire(folder: JobFolder) -> None:
    scale_and_check(folder, **VALIDATION)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw_beside_spares(seed))
    check(job, folder.run(timeout=100))
