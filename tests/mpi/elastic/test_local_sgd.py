"""LocalSGD with trainers that are uneven, die, join and leave: each sample counts once, all have the same weights."""

import random

import pytest
from exact_job import JOIN_POINTS, POINTS, books
from jobs import JobFolder
from local_job import check, run, trained


def test_spare_replaces_a_trainer_that_dies_in_an_average(folder: JobFolder) -> None:
    job, result = run(folder, {"1": "average:4"}, spares=1, joins=1, momentum=0.5, pauses_s={"2": 0.02})
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [3], result.logs()


def test_job_with_a_stream_survives_a_death_between_averages(folder: JobFolder) -> None:
    job, result = run(folder, {"0": "7 SIGKILL"}, "stream", every=4, pauses_s={"2": 0.01})
    check(job, result)
    assert result.summary["lost_trainers"] == [0], result.logs()


@pytest.mark.full
def test_trainers_that_stop_early_average_until_all_are_done(folder: JobFolder) -> None:
    job, result = run(folder, {}, elastic=False, every=4, epochs=1, stops={"0": 2, "1": 6})
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    left = "trainer {} left the job in the middle of an epoch, after {} batches"  # the first to be noticed
    assert result.summary["reason"] in (left.format(0, 2), left.format(1, 6)), result.summary
    assert result.summary["loaded"]["untrained"] == 34, result.summary
    written = books(result, 3)
    counts = trained(written, result.logs())
    assert sum(counts[0].values()) == 8 + 24 + 34, counts  # of 100 rows, in batches of 4
    averages = [[line["average"] for line in lines if "average" in line] for lines in written]
    assert averages[0] == averages[1] == averages[2] and len(averages[0]) >= 3, averages


@pytest.mark.full
def test_job_resumes_exactly_from_a_checkpoint_of_an_average(folder: JobFolder) -> None:
    pauses_s = {"0": 0.05, "1": 0.04, "2": 0.06}
    more = {"every_s": 0.2, "momentum": 0.5, "epochs": 7, "every": 5, "pauses_s": pauses_s}
    job, result = run(folder, {"1": "35 SIGKILL"}, elastic=False, **more)
    assert result.status != 0 and result.run is not None, result.logs()
    resumed = folder.resume(result.run, timeout=120)
    check(job, resumed)
    assert [event for event in resumed.events() if event["event"] == "resume" and event["checkpoint"]], resumed.logs()


@pytest.mark.full
@pytest.mark.parametrize("data", ["files", "loader", "stream"])
@pytest.mark.parametrize("point", ["average", "averaged", *POINTS[2:4]])
def test_job_survives_a_death_at_any_point(folder: JobFolder, point: str, data: str) -> None:
    job, result = run(
        folder, {"1": f"{point}:3"}, data, pauses_s={"0": 0.01, "2": 0.003}, momentum=0.5 * (data == "loader")
    )
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("elastic", [True, False])
def test_averages_are_exact_with_a_global_batch_size(folder: JobFolder, elastic: bool) -> None:
    kills = {"1": "9 SIGKILL"} if elastic else {}
    job, result = run(folder, kills, "stream", elastic=elastic, global_batch_size=14)
    check(job, result)
    assert result.summary.get("lost_trainers", []) == [1] * elastic, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(12))
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    dice = random.Random(seed)
    trainers = dice.randint(2, 4)
    data = dice.choice(["files", "loader", "stream"])
    spares = 0 if data == "stream" else dice.randint(0, 2)
    points = ["average", "averaged", "reduced", "agree", "regroup", *(JOIN_POINTS[:3] if spares else [])]
    kills = {}
    for trainer in dice.sample(range(trainers), dice.randint(1, min(2, trainers - 1))):
        point = dice.choice(points)
        first = 1 if point == "regroup" or point in JOIN_POINTS else dice.randint(1, 9)
        kills[str(trainer)] = f"{point}:{first}" if dice.random() < 0.6 else f"{dice.randint(0, 12)} SIGKILL"
    pauses_s = {str(trainer): dice.choice([0, 0.003, 0.02]) for trainer in range(trainers)}
    job, result = run(
        folder,
        kills,
        data,
        trainers,
        spares,
        every=dice.randint(1, 6),
        pauses_s=pauses_s,
        momentum=dice.choice([0.0, 0.5]),
    )
    check(job, result)
