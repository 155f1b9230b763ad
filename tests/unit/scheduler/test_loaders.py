"""Loaders: which take requests, what replaces a lost one, and how a job with them ends."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Finalized, Stop

Make = Callable[..., Any]
NONE = {"groups": 0, "simulations": 0}


def finishing(job: Any) -> Any:
    """Let the job's trainers leave one second after the first loader starts to serve."""

    def serves(loader: int) -> None:
        for trainer in range(job.plan.trainers if loader == 0 else 0):
            job.goodbye(trainer, after=1.0)

    job.before["serves"] = serves
    return job


def test_a_job_without_solvers_ends_when_its_trainers_do(make_job: Make) -> None:
    job = finishing(make_job(**NONE, trainers=2, loaders=2))
    assert job.run() == 0
    assert job.called("serves") == [(0,), (1,)] and job.called("release") == [(0,), (1,)]
    assert job.summary["status"] == "complete" and job.summary["loaders"] == {"joined": 2, "lost": 0}
    assert job.called("end_of_stream") == [] and job.called("stop") == [] and len(job.called("all_gone")) == 1
    assert [event["loader"] for event in job.events("loader_left")] == [0, 1]


def test_loaders_stay_while_solvers_run_and_leave_after_the_end_of_stream(make_job: Make) -> None:
    job = make_job(loaders=1)
    assert job.run() == 0
    assert job.summary["simulations"]["complete"] == 3 and job.called("release") == [(0,)]
    names = [call[0] for call in job.calls]
    assert names.index("end_of_stream") < names.index("release") < names.index("all_gone")


def test_spare_loader_serves_only_after_it_replaces_a_lost_one(make_job: Make) -> None:
    job = make_job(**NONE, loaders=1, loader_spares=1, fault_tolerance="ulfm")
    job.before["serves"] = lambda loader: job.goodbye(0, after=1.0) if loader == 1 else job.lose_loader(0, after=0.5)
    assert job.run() == 0
    assert job.called("lose_loader") == [(0, "")] and job.called("serves") == [(0,), (1,)]
    assert [event["loader"] for event in job.events("spare_takes_over")] == [1]
    (lost,) = job.events("loader_lost")
    assert (lost["loader"], lost["cause"], lost["signal"]) == (0, "signal", 9)
    assert job.summary["loaders"] == {"joined": 2, "lost": 1}


@pytest.mark.parametrize("start", ["split", "spawn"])
def test_lost_loader_is_replaced_by_a_spawned_one(make_job: Make, start: str) -> None:
    job = make_job(**NONE, loaders=1, loader_start=start, fault_tolerance="ulfm", can_spawn=True)
    first = 0 if start == "spawn" else 1
    job.before["serves"] = lambda loader: job.goodbye(0, after=1.0) if loader else job.lose_loader(0, after=0.5)
    assert job.run() == 0
    assert job.called("spawn_loader") == [(number,) for number in range(first, 2)]
    assert job.called("serves") == [(0,), (1,)] and job.summary["loaders"] == {"joined": 2, "lost": 1}


def test_job_fails_if_the_last_loader_is_lost(make_job: Make) -> None:
    job = make_job(**NONE, loaders=2, fault_tolerance="ulfm")
    job.before["serves"] = lambda loader: job.lose_loader(loader, after=0.5 + loader)
    assert job.run() == 1
    error = job.summary["error"]
    assert error.startswith("No loader is left: the last one, loader 1, was killed by SIGKILL")
    assert "rank-0003-loader-1.log. Resume the job with `mpidata run --resume" in error
    assert job.summary["died"] and job.summary["loaders"]["lost"] == 2


@pytest.mark.parametrize(("same", "tolerate", "status"), [(True, 0, 1), (True, 1, 0), (False, 0, 0)])
def test_repeated_loader_deaths_at_the_same_work_fail_the_job_unless_tolerated(
    make_job: Make, same: bool, tolerate: int, status: int
) -> None:
    job = make_job(
        **NONE, loaders=1, loader_retries=1, loader_tolerate=tolerate, fault_tolerance="ulfm", can_spawn=True
    )

    def serves(loader: int) -> None:
        if loader < 2:
            job.lose_loader(loader, after=0.1, item="index 7" if same else f"index {loader}")
        else:
            job.goodbye(0, after=1.0)

    job.before["serves"] = serves
    assert job.run() == status
    assert job.called("lose_loader") == [(0, f"index {7 if same else 0}"), (1, f"index {7 if same else 1}")]
    if status:
        assert job.summary["error"].startswith("2 loaders were lost at the same work. Loader 1, the last one, was")
        assert "while it worked on index 7. Its output" in job.summary["error"]


def test_failed_loader_spawn_is_retried_as_often_as_configured(make_job: Make) -> None:
    job = make_job(**NONE, loaders=1, loader_start="spawn", loader_retries=2)
    job.before["spawn_loader"] = lambda loader: bool(job.loader_news.append((loader, "It has no memory")))
    assert job.run() == 1
    assert job.called("spawn_loader") == [(0,), (1,), (2,)]
    assert "Loader 2 could not be started, and no loader is left. It has no memory." in job.summary["error"]


def test_loader_that_does_not_leave_delays_the_end_only_briefly(make_job: Make) -> None:
    job = finishing(make_job(**NONE, loaders=1))
    job.before["release"] = lambda loader: False
    before = job.now
    assert job.run() == 1000  # aborted, but not as failed
    assert job.summary["status"] == "complete" and 7 <= job.now - before < 10


def test_lost_loader_is_not_replaced_after_a_stop(make_job: Make) -> None:
    job = make_job(loaders=1, fault_tolerance="ulfm", can_spawn=True)

    def release(loader: int) -> bool:
        job.lose_loader(loader, after=0.5)
        return False

    job.before["release"] = release
    job.event(Stop, 0, text="enough")
    assert job.run() == 0 and job.summary["status"] == "stopped"
    assert job.called("spawn_loader") == [] and len(job.called("release")) == 1


def test_message_of_an_unknown_loader_is_refused(make_job: Make) -> None:
    job = make_job(**NONE, loaders=1)
    job.before["serves"] = lambda loader: job.event(Finalized, 4, of_loader=True)
    assert job.run() == 1 and "There is no loader 4." in job.summary["error"]
