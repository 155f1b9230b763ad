"""Spares and changing numbers of trainers in jobs with solvers: each sample is trained on once."""

import local_job
import pytest
from exact_job import SECOND_DEATHS, books
from jobs import JobFolder, ranks_of
from scaling import count, run_meanwhile, scale_up_and_down
from stream_job import check, draw_with_spares, sizes, write_job
from waiting import wait_until


def test_spare_replaces_a_dead_trainer(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "9 SIGKILL"}, trainers=2, spares=1, pause_s=0.02)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1] and result.summary["joined_trainers"] == [2], result.logs()
    assert [len(of) for of in sizes(job, result).values()][-1] == 2, result.logs()
    changes = [line for line in books(result, 3)[2] if line.get("joined")]
    assert [change["joined"] for change in changes] == [[1]], changes


@pytest.mark.full
@pytest.mark.parametrize("tail", ["drop", "repeat"])
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_spare_joins_with_each_policy_and_tail(folder: JobFolder, policy: str, tail: str) -> None:
    buffer = {"policy": policy, "capacity": 60, "tail": tail}
    job = write_job(folder, {"0": "6 SIGKILL"}, trainers=3, spares=1, pause_s=0.02, buffer=buffer)
    result = folder.run(timeout=100)
    check(job, result)
    assert result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
def test_global_batch_is_shared_with_the_spare(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "6 SIGKILL"}, trainers=3, spares=1, pause_s=0.02, global_batch_size=11)
    result = folder.run(timeout=100)
    check(job, result)
    shares = [sorted(of) for of in sizes(job, result).values()]
    assert shares[0] == shares[-1] == [3, 4, 4] and {sum(of) for of in shares} == {11}, shares
    assert result.summary["joined_trainers"] == [3], result.logs()


@pytest.mark.full
def test_spare_joins_with_several_batches_per_step(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "4 SIGKILL"}, trainers=2, spares=1, every=3, pause_s=0.05, batch_size=3)
    result = folder.run(timeout=100)
    check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()


@pytest.mark.full
def test_spare_joins_trainers_with_local_sgd(folder: JobFolder) -> None:
    job, result = local_job.run(folder, {"1": "9 SIGKILL"}, "stream", trainers=2, spares=1, pauses_s={"0": 0.05})
    local_job.check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()


@pytest.mark.full
def test_spare_replaces_a_trainer_lost_by_an_exception(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "6 raise"}, trainers=2, spares=1, pause_s=0.05, exceptions="lose")
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()


@pytest.mark.full
def test_unused_spares_leave_cleanly(folder: JobFolder) -> None:
    job = write_job(folder, {}, trainers=2, spares=2)
    result = folder.run(timeout=60)
    check(job, result)
    assert "joined_trainers" not in result.summary and "run_again" not in result.summary, result.summary


@pytest.mark.full
@pytest.mark.parametrize(
    ("kills", "lost"),
    [
        *SECOND_DEATHS,
        ({"3": "12 SIGKILL"}, [2, 3]),
        ({"1": "4 SIGKILL"}, [1, 2]),
    ],
)
def test_job_survives_a_second_death_while_a_spare_joins(
    folder: JobFolder, kills: dict[str, str], lost: list[int]
) -> None:
    job = write_job(folder, {"2": "4 SIGKILL", **kills}, trainers=3, spares=2, pause_s=0.05)
    result = folder.run(timeout=100)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == lost, result.logs()


@pytest.mark.full
def test_job_survives_deaths_of_a_solver_and_a_trainer_at_the_same_time(folder: JobFolder) -> None:
    solvers = {"groups": 2, "spares": 1, "function": "functions.dies_at_times:simulate"}
    job = write_job(folder, {"0": "6 SIGKILL"}, trainers=2, spares=1, pause_s=0.05, solvers=solvers)
    result = folder.run(timeout=100)
    check(job, result)
    events = [event["event"] for event in result.events()]
    assert events.count("group_lost") == 1 and events.count("trainer_joined") == 1, events


@pytest.mark.full
@pytest.mark.parametrize("policy", ["fifo", "firo", "reservoir"])
def test_trainers_join_and_retire_while_the_job_runs(folder: JobFolder, policy: str) -> None:
    buffer = {"policy": policy, "capacity": 40}
    job = write_job(folder, {}, trainers=2, spares=2, joins=2, retires=1, buffer=buffer, checkpoint={"every_s": 0.3})
    result = run_meanwhile(folder, lambda: scale_up_and_down(folder))
    check(job, result)
    assert {line["end"] for lines in books(result, 4) for line in lines if "end" in line} == {3}, result.logs()


@pytest.mark.full
@pytest.mark.parametrize("again", [2, 3])
def test_job_resumes_after_trainers_joined_and_retired(folder: JobFolder, again: int) -> None:
    def scale_and_stop() -> None:
        scale_up_and_down(folder)
        checkpoints = count(folder, "checkpoint")
        wait_until(lambda: count(folder, "checkpoint") > checkpoints + 1, 60)
        for rank in ranks_of(folder.path):
            rank.kill()

    job = write_job(folder, {}, trainers=2, spares=2, joins=2, retires=2, checkpoint={"every_s": 0.3})
    result = run_meanwhile(folder, scale_and_stop)
    assert result.status == 1 and result.run is not None, result.logs()
    check(job, folder.resume(result.run, "--set", f"trainers.ranks={again}", "--set", "trainers.spares=1", timeout=100))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.full) for seed in range(20)])
def test_job_survives_random_deaths(folder: JobFolder, seed: int) -> None:
    job = write_job(folder, **draw_with_spares(seed))
    check(job, folder.run(timeout=100))
