"""Trainers that alternate between a stream and files are exact in both when a trainer or a loader dies."""

import time
from collections import Counter, defaultdict
from typing import Any

import pytest
from exact_job import books, who_took_part, write_parts
from jobs import JobFolder, Result, ranks_that
from killing import events_of
from stream_job import check, write_job
from waiting import wait_until

ROWS = [40, 33, 27]  # 3 trainers with batches of 4 have an epoch of 9 steps


def write(folder: JobFolder, kills: dict[str, str], loaders: int = 1, **more: Any) -> dict[str, Any]:
    """Write a job of trainers/elastic/mixed.py."""
    write_parts(folder, ROWS)
    return write_job(folder, kills, script="mixed", loaders={"ranks": loaders}, **more)


def check_both(job: dict[str, Any], result: Result) -> None:
    """Each sample is trained on once, and each row once in each completed epoch."""
    check(job, result)
    told = f"{job}\n{result.logs()}"
    drawn: dict[int, dict[int, list[int]]] = defaultdict(dict)
    made: dict[int, dict[int, float]] = defaultdict(dict)
    epochs: dict[int, int] = {}
    written = books(result, job["trainers"] + job["spares"])
    resumed = max(line["resumed"] for lines in written for line in lines if "resumed" in line)
    for trainer, lines in enumerate(written):
        starts = 0
        for line in lines:
            starts += "resumed" in line or "joined_at" in line
            if resumed and starts == 1 and line.get("of_step", line.get("made", 0)) >= resumed:  # was made again
                continue
            if "of_files" in line:
                drawn[line["of_step"]][trainer] = line["of_files"]
                epochs[line["of_step"]] = line["epoch"]
            elif "made" in line:
                made[line["made"]][trainer] = line["files"]
    if not resumed:
        given = [sum("of_files" in line for line in lines) for lines in written]
        told_of = result.summary["loaded"]["batches"]
        living = set(range(len(given))).difference(result.summary.get("lost_trainers", []))
        assert [told_of[one] for one in living] == [given[one] for one in living], (told_of, given, told)
    trained: dict[int, Counter[int]] = defaultdict(Counter)
    for step, outcomes in made.items():
        took_part = who_took_part(drawn[step], set(outcomes), next(iter(outcomes.values())))
        assert took_part and len(set(outcomes.values())) == 1, (step, outcomes, told)
        for trainer in took_part:
            trained[epochs[step]].update(drawn[step][trainer])
    rows = set(range(1, 1 + sum(ROWS)))
    assert len(trained) > 2, (sorted(trained), told)
    for epoch, counts in trained.items():
        last = epoch == max(trained)
        assert set(counts) <= rows if last else set(counts) == rows, (epoch, rows - set(counts), told)
        # Some rows repeat only if fewer rows were left than trainers.
        assert sum(counts.values()) - len(counts) < job["trainers"] + job["spares"], (epoch, counts, told)


@pytest.mark.parametrize("dies_at", [9, pytest.param(4, marks=pytest.mark.full)])
def test_stream_and_files_are_exact_after_a_death_between_or_within_epochs(folder: JobFolder, dies_at: int) -> None:
    job = write(folder, {"1": f"{dies_at} SIGKILL"}, buffer={"tail": "repeat"})  # so that no sample may be missing
    result = folder.run(timeout=60)
    check_both(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("point", ["reduced:10", "agree:10", "agree:11", "agreed:10", "meet:1"])
def test_stream_and_files_are_exact_after_a_death_at_any_point(folder: JobFolder, point: str) -> None:
    job = write(folder, {"2": point}, buffer={"tail": "repeat"})
    result = folder.run(timeout=60)
    check_both(job, result)
    assert result.summary["lost_trainers"] == [2], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("policy", ["firo", "reservoir"])
def test_stream_and_files_are_exact_after_two_deaths_with_other_policies(folder: JobFolder, policy: str) -> None:
    job = write(folder, {"0": "5 SIGKILL", "2": "20 exit"}, buffer={"policy": policy, "capacity": 60})
    result = folder.run(timeout=60)
    check_both(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("dies_at", [9, 13])
def test_spare_trains_on_both_stream_and_files(folder: JobFolder, dies_at: int) -> None:
    job = write(folder, {"1": f"{dies_at} SIGKILL"}, spares=1, pause_s=0.1, buffer={"tail": "repeat"})
    result = folder.run(timeout=60)
    check_both(job, result)
    assert result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("kills", [{}, {"1": "20 SIGKILL"}])
def test_stream_and_files_are_exact_after_a_loader_death(folder: JobFolder, kills: dict[str, str]) -> None:
    job = write(folder, kills, loaders=2, pause_s=0.05)
    process, begun = folder.start(), time.monotonic()
    wait_until(lambda: any(event["event"] == "epoch" for event in events_of(folder.path)), 60, alive=process)
    ranks_that(folder.path, lambda rank: "mpidata.loader" in rank.cmdline())[0].kill()
    result = folder.finish(process, 60, begun)
    folder.assert_nothing_left()
    check_both(job, result)
    assert result.summary["loaders"]["lost"] == 1, result.logs()
    assert result.summary.get("lost_trainers", []) == sorted(map(int, kills)), result.logs()


@pytest.mark.full
def test_job_with_fewer_trainers_than_at_least_resumes_stream_and_files(folder: JobFolder) -> None:
    kills = {"0": "12 SIGKILL", "1": "22 SIGKILL"}
    job = write(folder, kills, at_least=2, pause_s=0.05, checkpoint={"every_s": 0.2})
    result = folder.run(timeout=60)
    assert result.status == 1 and result.run is not None, result.logs()
    sets = ["--set", "trainers.ranks=2", "--set", "trainers.elastic.at_least=1"]
    resumed = folder.resume(result.run, *sets, timeout=60)
    check_both(job, resumed)
