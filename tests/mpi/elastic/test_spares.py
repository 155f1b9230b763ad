"""Spares replace a trainer that has died: rows and weights stay exact."""

import json
import re
import subprocess
from collections import Counter, defaultdict

import pytest
from exact_job import POINTS, SECOND_DEATHS, books, check, draw_with_spares, run
from jobs import BIN, JobFolder, environment, ranks_of, ranks_that, variables_of
from killing import events_of
from waiting import wait_until

ROWS = [40, 33, 27]


def _job(kills: dict[str, str], trainers: int = 2, spares: int = 1, joins: int = 1, **options: object) -> dict:
    given = {"batch_size": 4, "epochs": 2, "shuffle": "rows", "drop_last": False, "kills": kills, "joins": joins}
    return {"rows": ROWS, "trainers": trainers, "spares": spares, "loaders": 1, "options": given | options}


def test_spare_replaces_a_dead_trainer(folder: JobFolder) -> None:
    job = _job({"1": "3 SIGKILL"})
    result = run(folder, job)
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [2], result.logs()
    assert result.output.count("Trainer 2 (rank 3), a spare, has taken a place, and trains from now on.") == 1
    assert "trainer 1 lost, and the others went on; spare 2 took a place" in result.output, result.output
    changes = [line for line in books(result, 3)[2] if "joined" in line]
    assert changes == [{"lost": [], "joined": [1], "rank": 1, "trainers": 2}], changes


@pytest.mark.full
def test_unused_spares_leave_cleanly(folder: JobFolder) -> None:
    job = _job({}, spares=2, joins=0)
    result = run(folder, job)
    check(job, result)
    assert "joined_trainers" not in result.summary and books(result, 4)[2:] == [[], []], result.logs()


@pytest.mark.full
def test_data_loader_samples_are_exact_with_a_joined_spare(folder: JobFolder) -> None:
    job = _job({"0": "7 SIGKILL"}, loader=sum(ROWS))
    result = run(folder, job)
    check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS[:5])
def test_spare_replaces_a_trainer_that_dies_at_any_point(folder: JobFolder, point: str) -> None:
    job = _job({"1": f"{point}:3"}, trainers=3)
    result = run(folder, job)
    check(job, result)
    assert result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
@pytest.mark.parametrize(
    ("kills", "lost"),
    [
        *SECOND_DEATHS,
        ({"3": "30 SIGKILL"}, [2, 3]),
    ],
)
def test_job_survives_a_second_death_while_a_spare_joins(
    folder: JobFolder, kills: dict[str, str], lost: list[int]
) -> None:
    job = _job(
        {"2": "2 SIGKILL", **kills}, trainers=3, spares=2, joins=2 if "3" not in kills or " " in kills["3"] else 1
    )
    result = run(folder, job)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == lost, result.logs()


@pytest.mark.full
def test_hung_spare_is_killed_after_timeout_s(folder: JobFolder) -> None:
    job = _job({"1": "9 SIGKILL"}, joins=0)

    def stop_spare() -> None:
        wait_until(lambda: any(book.stat().st_size for book in folder.path.glob("runs/job/1/book-*.jsonl")), 60)
        ranks = ranks_that(folder.path, lambda one: variables_of(one).get("OMPI_COMM_WORLD_RANK") == "3")
        (spare,) = [one for one in ranks if one.name() != "mpidata-rank"]
        spare.suspend()

    result = run(folder, job, meanwhile=stop_spare, timeout_s=4)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [1, 2], result.logs()


@pytest.mark.full
def test_one_spare_joins_after_two_deaths(folder: JobFolder) -> None:
    job = _job({"0": "3 SIGKILL", "1": "3 SIGKILL"}, trainers=4)
    result = run(folder, job)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, 1] and result.summary["joined_trainers"] == [4]


@pytest.mark.full
def test_torch_distributed_is_set_up_with_the_spare(folder: JobFolder) -> None:
    job = _job({"0": "3 SIGKILL"}, trainers=3, group=True)
    result = run(folder, job)
    check(job, result)
    groups = [line for lines in books(result, 4) for line in lines if "group" in line]
    assert groups[-1]["group"] == groups[-1]["living"] == 3, groups
    assert all(line["number"] == line["rank"] for line in groups), groups


@pytest.mark.full
def test_checkpoint_written_after_a_spare_joined_can_be_resumed(folder: JobFolder) -> None:
    job = _job({"1": "3 SIGKILL", "0": "60 SIGKILL", "2": "60 SIGKILL"}, trainers=3, epochs=9)
    result = run(folder, job, at_least=2, checkpoint={"every_s": 0.1})
    assert result.status == 1 and result.run is not None, result.logs()
    written = [re.findall(r"\d+", path.name) for path in result.run.glob("checkpoints/*/trainer-*.h5")]
    assert ["0003"] in [number[:1] for number in written], json.dumps(written)
    again = folder.resume(result.run, timeout=120)
    assert again.status == 0, again.logs()


def _scale_up_and_down(folder: JobFolder) -> None:
    """Scale from two trainers to four, then to three."""

    def scale_to(count: int) -> str:
        command = [BIN / "mpidata", "scale", "runs/job/1", "--trainers", str(count)]
        done = subprocess.run(command, cwd=folder.path, env=environment(), capture_output=True, text=True, timeout=30)
        return done.stdout + done.stderr

    def events(name: str) -> int:
        return sum(event["event"] == name for event in events_of(folder.path))

    wait_until(lambda: events("loader_joined"), 60)
    assert "4 trainers from the next step on, there were 2." in scale_to(4)
    wait_until(lambda: events("trainer_joined") == 2, 60)
    assert "at least 1" in scale_to(0)
    assert "the job has none to spare" in scale_to(5)
    assert "3 trainers from the next step on, there were 4." in scale_to(3)
    wait_until(lambda: events("trainer_retired") == 1, 60)


@pytest.mark.full
@pytest.mark.parametrize("rows", [0, sum(ROWS)])
def test_trainers_join_and_retire_while_the_job_runs(folder: JobFolder, rows: int) -> None:
    job = _job({}, spares=2, joins=2, retires=1, loader=rows)
    result = run(folder, job, meanwhile=lambda: _scale_up_and_down(folder), checkpoint={"every_s": 0.2})
    check(job, result)
    assert {line["end"] for lines in books(result, 4) for line in lines if "end" in line} == {3}, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("rows", [0, sum(ROWS)])
def test_job_resumes_after_trainers_joined_and_retired(folder: JobFolder, rows: int) -> None:
    def scale_and_stop() -> None:
        _scale_up_and_down(folder)
        checkpoints = sum(event["event"] == "checkpoint" for event in events_of(folder.path))
        wait_until(lambda: sum(e["event"] == "checkpoint" for e in events_of(folder.path)) > checkpoints + 1, 60)
        for rank in ranks_of(folder.path):
            rank.kill()

    job = _job({}, spares=2, joins=2, retires=2, loader=rows)
    result = run(folder, job, meanwhile=scale_and_stop, checkpoint={"every_s": 0.2})
    assert result.status == 1 and result.run is not None, result.logs()
    again = folder.resume(result.run, timeout=120)
    assert again.status == 0 and again.summary["status"] == "complete", again.logs()
    trained: dict[int, Counter[int]] = defaultdict(Counter)
    written = books(again, 4)
    (kept,) = {line["from_step"] for lines in written for line in lines if "from_step" in line}
    for lines in written:
        start = next((i for i, line in enumerate(lines) if "from_step" in line), len(lines))
        for i, line in enumerate(lines):
            if "rows" in line and (i > start or line["step"] < kept):
                trained[line["epoch"]].update(line["rows"])
    everything = dict.fromkeys(range(1, sum(ROWS) + 1), 1)
    assert kept > 0 and len(trained) >= job["options"]["epochs"], again.logs()
    assert all(counts == everything for counts in trained.values()), (trained, again.logs())


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = draw_with_spares(seed)
    check(job, run(folder, job))
