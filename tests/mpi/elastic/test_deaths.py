"""Trainers die at any point: the others continue, each row is trained on once an epoch, and all make the same steps."""

import pytest
from exact_job import POINTS, WAYS, books, check, draw, run
from jobs import JobFolder
from stream_job import write_job

ROWS = [40, 33, 27]


def _job(kills: dict[str, str], trainers: int = 3, **options: object) -> dict:
    given = {"batch_size": 4, "epochs": 2, "shuffle": "rows", "drop_last": False, "kills": kills, **options}
    return {"rows": ROWS, "trainers": trainers, "loaders": 1, "options": given}


@pytest.mark.parametrize(
    "point", ["reduced", *(pytest.param(of, marks=pytest.mark.full) for of in POINTS[:5] if of != "reduced")]
)
def test_job_survives_a_death_at_any_point(folder: JobFolder, point: str) -> None:
    job = _job({"1": f"{point}:5"})
    result = run(folder, job)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    drawn = [sum("rows" in line for line in lines) for lines in books(result, 3)]
    assert result.summary["loaded"]["batches"] == drawn and drawn[1] > 0, (drawn, result.summary)
    said = "(see `dmesg`); the other 2 take over what it had not trained on."
    assert (
        result.output.count(said) == 1
        and result.output.count("Trainer 1 (rank 2) was killed by SIGKILL") == 1
        and "NBC_Progress" not in result.output
    ), result.output
    assert "trainer 1 lost, and the others went on" in result.output, result.output


@pytest.mark.full
@pytest.mark.parametrize("loader", [0, sum(ROWS)])
def test_job_survives_a_death_at_the_start_of_a_checkpoint(folder: JobFolder, loader: int) -> None:
    job = _job({"1": "checkpoint:2"}, epochs=15, loses=1, loader=loader)
    result = run(folder, job, checkpoint={"every_s": 0.1})
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert [event for event in result.events() if event["event"] == "checkpoint"][1:], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS[5:])
def test_job_survives_a_second_death_during_recovery(folder: JobFolder, point: str) -> None:
    job = _job({"0": "2 SIGKILL", "2": f"{point}:1"}, trainers=4)
    result = run(folder, job)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 2], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("how", WAYS)
def test_job_survives_any_kind_of_trainer_death(folder: JobFolder, how: str) -> None:
    job = _job({"2": f"5 {how}"})
    check(job, run(folder, job))


def test_script_that_ends_in_mid_training_loses_only_its_trainer(folder: JobFolder) -> None:
    job = _job({"1": "5 quits"})
    result = run(folder, job)
    check(job, result)
    (lost,) = [event for event in result.events() if event["event"] == "trainer_lost"]
    assert lost["how"] == "has ended, because its script ended in the middle of the training, after 6 batches", lost


@pytest.mark.full
@pytest.mark.parametrize("data", ["rows", "stream"])
def test_job_ends_cleanly_if_all_scripts_end_in_mid_training(folder: JobFolder, data: str) -> None:
    kills = {"0": "5 saves", "1": "5 quits", "2": "5 quits"}  # the job waits for trainer 0
    if data == "stream":
        write_job(folder, kills)
        result = folder.run(timeout=60)
    else:
        result = run(folder, _job(kills))
    assert result.status == 0 and "lost_trainers" not in result.summary, result.logs()
    assert result.summary["status"] == ("stopped" if data == "stream" else "complete"), result.summary


@pytest.mark.full
def test_exception_loses_only_its_trainer_with_exceptions_lose(folder: JobFolder) -> None:
    job = _job({"2": "5 raise"})
    result = run(folder, job, exceptions="lose")
    check(job, result)
    (lost,) = [event for event in result.events() if event["event"] == "trainer_lost"]
    assert lost["trainer"] == 2 and lost["how"].startswith("raised ValueError: as it was told to (book.py line")
    assert "ValueError: as it was told to" in result.log("trainer", 2), result.logs()


@pytest.mark.full
def test_exception_ends_the_job_with_exceptions_end(folder: JobFolder) -> None:
    result = run(folder, _job({"2": "5 raise"}))
    assert result.status == 1 and "ValueError: as it was told to" in result.summary["error"], result.logs()


@pytest.mark.full
def test_data_loader_samples_are_exact_after_a_death(folder: JobFolder) -> None:
    job = _job({"1": "7 SIGKILL"}, loader=sum(ROWS))
    check(job, run(folder, job))


@pytest.mark.full
def test_lost_rows_are_drawn_again_at_the_end_of_an_epoch_without_steps(folder: JobFolder) -> None:
    result = run(folder, _job({"1": "4 SIGKILL"}, alone=True))
    assert result.status == 0 and result.summary["lost_trainers"] == [1], result.logs()
    seen = [line for lines in books(result, 3) for line in lines if "rows" in line]
    for epoch in range(2):
        rows = {row for line in seen if line["epoch"] == epoch for row in line["rows"]}
        assert rows == set(range(1, sum(ROWS) + 1)), epoch


@pytest.mark.full
def test_torch_distributed_is_set_up_again_after_a_death(folder: JobFolder) -> None:
    job = _job({"0": "3 SIGKILL"}, group=True)
    result = run(folder, job)
    check(job, result)
    groups = [line for lines in books(result, 3) for line in lines if "group" in line]
    assert sorted((line["group"], line["living"]) for line in groups) == [(2, 2)] * 4, groups
    assert sorted(line["number"] for line in groups) == [0, 0, 1, 1], groups
    assert all(line["number"] == line["rank"] for line in groups), groups


@pytest.mark.full
def test_stopped_trainer_is_killed_after_timeout_s(folder: JobFolder) -> None:
    job = _job({"1": "4 SIGSTOP"})
    result = run(folder, job, timeout_s=3)
    check(job, result)
    (lost,) = [event for event in result.events() if event["event"] == "trainer_lost"]
    assert "others had waited for it for 3 s (trainers.timeout_s)" in lost["how"], lost


def test_job_with_fewer_trainers_than_at_least_ends_and_can_be_resumed(folder: JobFolder) -> None:
    job = _job({"0": "6 SIGKILL", "1": "6 SIGKILL"})
    result = run(folder, job, at_least=2, checkpoint={"every_s": 0.2})
    assert result.status == 1, result.logs()
    assert "1 trainer is left, fewer than 'trainers.elastic.at_least', 2." in result.summary["error"], result.logs()
    assert result.run is not None
    again = folder.resume(result.run, "--set", "trainers.ranks=2", "--set", "trainers.elastic.at_least=1", timeout=120)
    assert again.status == 0, again.logs()


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(30)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = draw(seed)
    check(job, run(folder, job))
