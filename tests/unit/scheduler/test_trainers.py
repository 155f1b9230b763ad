"""If several trainers fail, the first cause is named; a trainer without a sign of life is also named."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpidata.loading.figures import LEFT_EARLY, WAITS_S
from mpidata.native.event import Died, Goodbye, Report, Status, Stop

MakeJob = Callable[..., Any]
PEER = "RuntimeError: [gloo] Read error: Connection reset by peer (train.py line 9)"


def leave_note(run: Path, rank: int, **note: Any) -> None:
    record = {"rank": rank, "exit": None, "signal": None, "joined": True, "told": False} | note
    (run / "exits").mkdir(exist_ok=True)
    (run / "exits" / f"rank-{rank:04}").write_text(json.dumps(record))


def reporting(make_job: MakeJob, **more: Any) -> Any:
    """Return a job of three trainers, the first of which reports an error that another trainer's death causes."""
    job = make_job(trainers=3, simulations=100, **more)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, after=1.0, failed=1, text=PEER)
    return job


@pytest.mark.parametrize(
    "note, how",
    [
        ({"signal": 9}, "was killed by SIGKILL"),
        ({"exit": 0}, "ended with exit status 0"),
        ({"exit": 3}, "ended with exit status 3"),
    ],
)
def test_dead_trainer_is_named_instead_of_the_one_that_reports_the_error(
    make_job: MakeJob, note: dict[str, Any], how: str
) -> None:
    job = reporting(make_job)
    leave_note(job.plan.run, 1, exit=1, told=True)
    leave_note(job.plan.run, 3, **note)
    assert job.run() == 1
    assert job.summary["error"].startswith(f"Trainer 2 (rank 3) {how}")
    assert (
        f". Its output is in {job.plan.run}/logs/rank-0003" in job.summary["error"] and PEER not in job.summary["error"]
    )
    assert job.summary["log"].endswith("rank-0003-trainer-2.log")


@pytest.mark.parametrize("tells", ["MPI", "a note"])
def test_dead_server_is_named_instead_of_the_trainer_that_reports_the_error(make_job: MakeJob, tells: str) -> None:
    job = make_job(trainers=2, simulations=100, servers=2)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    said = "StreamError: mpidata.ParameterServer: no parameter server answers: one has died, or"
    if tells == "MPI":
        job.event(Died, 1, after=1.0, of_solver=False, of_server=True, rank=5, rank_in_group=0)
    job.event(Stop, 0, after=1.1, failed=1, text=said)
    leave_note(job.plan.run, 5, signal=9)
    assert job.run() == 1
    assert job.summary["error"].startswith("Server 1 (rank 5) was killed by SIGKILL")
    assert job.summary["log"].endswith("rank-0005-server-1.log")


def test_dead_mate_is_named_instead_of_the_trainer_that_reports_the_error(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100, ranks_per_replica=3)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Died, 1, after=1.0, of_solver=False, of_mate=True, rank=6, rank_in_group=0)
    job.event(Stop, 0, after=1.1, failed=1, text="RuntimeError: gloo: Connection closed by peer")
    leave_note(job.plan.run, 6, signal=9)
    assert job.run() == 1
    assert job.summary["error"].startswith("Mate 2 of trainer 1 (rank 6) was killed by SIGKILL"), job.summary
    assert job.summary["log"].endswith("rank-0006-mate-1-2.log")


def test_a_server_may_die_when_all_trainers_have_left(make_job: MakeJob) -> None:
    job = make_job(trainers=1, simulations=1, servers=1)
    died = {"of_solver": False, "of_server": True, "rank": 3, "rank_in_group": 0}
    job.before["end_of_stream"] = lambda: job.event(Died, 0, after=0.1, **died)  # the last figures come after 0.2 s
    assert job.run() == 0 and job.summary["status"] == "complete"


def test_exit_note_may_arrive_after_the_error_report(make_job: MakeJob) -> None:
    job = reporting(make_job)
    poll = job.poll

    def late(timeout_s: float) -> Any:
        if job.now > 1001.5:
            leave_note(job.plan.run, 2, signal=9)
        return poll(timeout_s)

    job.poll = late
    assert job.run() == 1 and job.summary["error"].startswith("Trainer 1 (rank 2) was killed by SIGKILL")


def test_first_of_two_deaths_is_named_regardless_of_the_order_in_mpi_reports(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    leave_note(job.plan.run, 2, signal=9)
    leave_note(job.plan.run, 1, signal=6)
    os.utime(job.plan.run / "exits" / "rank-0002", (1, 1))
    job.event(Died, 0, of_solver=False, rank=1, rank_in_group=0)
    assert job.run() == 1 and job.summary["error"].startswith("Trainer 1 (rank 2) was killed by SIGKILL")


def test_trainer_killed_together_with_its_mpidata_rank_is_named(make_job: MakeJob) -> None:
    job = reporting(make_job)
    alive = job.plan.run / "private" / "alive"
    alive.mkdir(parents=True)
    files = [os.open(alive / f"rank-{rank:04}", os.O_RDWR | os.O_CREAT) for rank in (1, 2, 3)]
    for held in (files[0], files[2]):
        fcntl.flock(held, fcntl.LOCK_EX)
    assert job.run() == 1
    assert job.summary["error"].startswith("Trainer 1 (rank 2) vanished without an exit note")
    for file in files:
        os.close(file)


def test_silent_trainer_is_named_instead_of_the_one_that_reports_the_error(make_job: MakeJob) -> None:
    job = reporting(make_job)
    job.event(Status, 1)
    for tenth in range(250):
        job.event(Status, 0, after=tenth / 10)
        job.event(Status, 2, after=tenth / 10)
    job.later = [(at + 20 * (not isinstance(event, Status)), number, event) for at, number, event in job.later]
    assert job.run() == 1
    assert job.summary["error"].startswith("Trainer 1 (rank 2) has given no sign of life for 2")


def test_script_error_is_reported_even_if_another_script_left_early(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0, text="the script left its loop early")
    job.event(Stop, 1, after=1.0, failed=1, text="ValueError: no such thing (train.py line 7)")
    assert job.run() == 1 and job.summary["error"].startswith("ValueError: no such thing (train.py line 7). The script")


def test_failed_script_that_leaves_is_not_reported_as_left_early(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100)
    job.event(Stop, 1, failed=1, text="ValueError: no such thing (train.py line 7)")
    job.event(Goodbye, 1, after=0.2)
    job.before["dispatch"] = lambda group, simulation: False
    assert job.run() == 1 and job.summary["reason"] is None
    assert job.summary["error"].startswith("ValueError: no such thing (train.py line 7). The script of trainer 1")


def test_silent_trainer_is_reported_once(make_job: MakeJob) -> None:
    job = make_job(trainers=2, simulations=100)
    (job.plan.run / "logs").mkdir()
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Status, 0)
    job.event(Status, 1)
    for second in range(1, 200):
        job.event(Status, 0, after=float(second))
    job.event(Stop, 0, after=150.0, failed=1, text="ValueError: enough")
    assert job.run() == 1
    (silent,) = job.events("trainer_silent")
    assert silent["trainer"] == 1
    assert (
        (job.plan.run / "logs" / "idle.log").read_text().count("Trainer 1 (rank 2) has given no sign of life for 60 s")
    )


@pytest.mark.parametrize(("early", "after_s"), [(True, 10), (False, 60)])
def test_job_without_a_stream_fails_if_a_trainer_leaves_while_others_wait(
    make_job: MakeJob, early: bool, after_s: int
) -> None:
    job = make_job(trainers=2, groups=0, simulations=0, loaders=1)
    job.before |= {"stop": lambda: False, "end_of_stream": lambda: False}
    if early:
        job.event(Report, 1, after=1.0, values=((LEFT_EARLY, 0, 21.0),))
    job.event(Goodbye, 1, after=1.0)
    for second in range(100):
        job.event(Report, 0, after=2.0 + second, values=((WAITS_S, 0, float(second)),))
    assert job.run() == 1
    how = "in the middle of an epoch, after 21 batches" if early else "before the others"
    assert job.summary["error"].startswith(f"The job was stopped (trainer 1 left the job {how}), but trainer 0 did not")
    assert after_s < job.now - 1000 < after_s + 12


def test_trainer_may_continue_after_others_have_left(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=0, simulations=0, loaders=1)
    job.before["stop"] = lambda: False
    job.event(Report, 1, after=1.0, values=((LEFT_EARLY, 0, 21.0),))
    job.event(Goodbye, 1, after=1.0)
    job.event(Report, 0, after=2.0, values=((WAITS_S, 0, 9.0),))
    job.event(Report, 0, after=3.0, values=((WAITS_S, 0, 0.0),))
    job.event(Goodbye, 0, after=500.0)
    assert job.run() == 0 and job.summary["status"] == "complete"
