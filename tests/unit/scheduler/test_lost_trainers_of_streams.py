"""Trainers of a stream that die while the others continue: simulations that the others lack run again."""

from collections.abc import Callable
from typing import Any

from dying_trainers import die

from mpidata.loading.figures import LEFT_EARLY, RETIRES
from mpidata.native.constants import JOINS, TRAINS
from mpidata.native.event import (
    Adopted,
    Finalized,
    Goodbye,
    Lacks,
    Report,
    Status,
)
from mpidata.run.folder import RunFolder

MakeJob = Callable[..., Any]


def streaming(make_job: MakeJob, trainers: int = 3, **plan: Any) -> Any:
    """Return a job of trainers that train on a stream: the simulations of `lacks` run again after the first death."""
    job = make_job(trainers=trainers, trainers_at_least=1, fault_tolerance="ulfm", **plan)
    living, deaths = set(range(trainers)), 0

    def lose_trainer(trainer: int, joins: bool = False) -> None:
        nonlocal deaths
        living.difference_update(() if joins else (trainer,))
        deaths += 1
        for one in sorted(living):
            for simulation in job.lacks if deaths == 1 else ():
                job.event(Lacks, one, after=1.0, simulation=simulation)
            job.event(Adopted, one, after=1.0 + one, changes=deaths)

    job.before["lose_trainer"] = job.before["retire_trainer"] = lose_trainer
    job.before["join_trainer"] = lambda trainer: lose_trainer(trainer, joins=True)
    job.before["end_of_stream"] = lambda: False  # trainers leave when a test lets them
    job.lacks = []
    return job


def drain(job: Any, trainers: list[int], after: float) -> None:
    for trainer in trainers:
        job.event(Status, trainer, after=after, ended=True, all_drawn=True)
        job.event(Goodbye, trainer, after=after + 1.0)


def test_simulations_with_steps_lost_in_a_trainer_death_run_again(make_job: MakeJob) -> None:
    job = streaming(make_job)
    job.lacks = [0, 2]
    die(job, 1, 2.0, signal=9)
    drain(job, [0, 2], 20.0)
    assert job.run() == 0 and job.summary["status"] == "complete"
    assert [simulation for _, simulation in job.called("dispatch")] == [0, 1, 2, 0, 2]
    assert job.called("lose_trainer") == [(1,)] and job.summary["run_again"] == 2
    assert [event["simulation"] for event in job.events("run_again")] == [0, 2]
    assert len(job.called("end_of_stream")) == 2  # it was also announced before the death


def test_validation_simulations_run_again_first_after_a_trainer_death(make_job: MakeJob) -> None:
    job = streaming(make_job, simulations=6, validation=2)
    job.lacks = [0, 7]
    die(job, 1, 2.5, signal=9)
    drain(job, [0, 2], 20.0)
    assert job.run() == 0 and len(job.called("validation")) == 2
    assert [simulation for _, simulation in job.called("dispatch")] == [6, 7, 0, 1, 2, 3, 4, 5, 7, 0]
    names = [call[0] for call in job.calls]
    after = names[names.index("lose_trainer") :]
    assert after.index("dispatch") < after.index("validation") < after.index("end_of_stream")


def test_groups_stay_until_the_trainers_have_drawn_all_samples(make_job: MakeJob) -> None:
    job = streaming(make_job)
    drain(job, [0, 1, 2], 30.0)
    assert job.run() == 0 and len(job.called("end_of_stream")) == 1
    left = [event["time"] for event in job.events("group_left")]
    ended = [event["time"] for event in job.events("end_of_stream")]
    names = [event["event"] for event in job.events()]
    assert names.index("group_left") > names.index("end_of_stream") and len(left) == len(ended) == 1
    assert names.index("group_left") < names.index("trainer_left")


def test_groups_leave_after_all_scripts_leave_without_reaching_the_end_of_stream(make_job: MakeJob) -> None:
    job = streaming(make_job)
    for trainer in range(3):
        job.event(Goodbye, trainer, after=5.0)
    assert job.run() == 0 and job.summary["status"] == "complete" and len(job.events("group_left")) == 1


def test_dispatch_pauses_until_all_trainers_adopt_the_shares_of_dead_ones(make_job: MakeJob) -> None:
    job = streaming(make_job, trainers=4)
    job.lacks = [1]
    die(job, 0, 2.0, signal=9)
    die(job, 3, 3.5, signal=9)  # trainer 1 learns of this only after it took over its part of trainer 0
    drain(job, [1, 2], 20.0)
    assert job.run() == 0 and job.summary["lost_trainers"] == [0, 3]
    assert job.called("lose_trainer") == [(0,), (3,)]
    assert [simulation for _, simulation in job.called("dispatch")] == [0, 1, 2, 1]


def test_trainer_death_after_all_samples_were_drawn_causes_no_rerun(make_job: MakeJob) -> None:
    job = streaming(make_job)
    drain(job, [0, 2], 5.0)
    die(job, 1, 8.0, signal=9)
    assert job.run() == 0 and job.summary["status"] == "complete" and job.summary["lost_trainers"] == [1]
    assert len(job.called("end_of_stream")) == 1 and "run_again" not in job.summary


def test_batches_that_a_dead_trainer_had_not_reported_are_counted(make_job: MakeJob) -> None:
    job = streaming(make_job, trainers=2)
    for trainer in range(2):
        job.event(Status, trainer, after=1.0, statistics=(0, 0, 0, 5, 0, 0, 0, 0))
    die(job, 1, 2.0, signal=9, batches=7)
    job.event(Status, 0, after=5.0, statistics=(0, 0, 0, 9, 0, 0, 0, 0), ended=True, all_drawn=True)
    job.event(Goodbye, 0, after=6.0)
    assert job.run() == 0 and job.summary["batches"]["per_trainer"] == [9, 7]


def test_last_trainer_of_a_stream_may_die_after_others_left_in_mid_epoch(make_job: MakeJob) -> None:
    job = streaming(make_job, trainers=2)
    job.event(Report, 0, after=4.0, values=((LEFT_EARLY, 0, 3.0),))
    drain(job, [0], 5.0)
    die(job, 1, 8.0, signal=9)
    assert job.run() == 0 and job.summary["status"] == "complete" and job.summary["lost_trainers"] == [1]


def test_job_fails_if_simulations_must_run_again_but_all_groups_have_left(make_job: MakeJob) -> None:
    job = streaming(make_job)
    job.lacks = [0]
    job.before["stop"] = lambda: False
    job.event(Finalized, 0, after=1.0)
    die(job, 1, 2.0, signal=9)
    drain(job, [0, 2], 20.0)
    assert job.run() == 1
    assert job.summary["error"].startswith("A trainer has died, and simulations are to run again, but all groups have")


def test_a_silent_trainer_of_a_stream_is_killed(make_job: MakeJob) -> None:
    job = streaming(make_job, trainers=2, trainers_timeout_s=30.0)
    job.event(Status, 0, after=1.0)
    for second in range(1, 50):
        job.event(Status, 1, after=float(second))
    drain(job, [0, 1], 50.0)
    assert job.run() == 0
    assert [event["trainer"] for event in job.events("trainer_late")] == [0]
    assert RunFolder(job.plan.run).given_up(0, "trainer").exists()


def test_simulations_needed_by_a_joining_spare_run_again(make_job: MakeJob) -> None:
    job = streaming(make_job, trainer_spares=1)
    job.lacks = [1]
    job.event(Report, 2, after=2.0, values=((JOINS, 5, 1.0),))
    job.event(Report, 2, after=2.5, values=((TRAINS, 5, 1.0),))
    drain(job, [0, 1, 2], 20.0)
    assert job.run() == 0 and job.summary["joined_trainers"] == [2]
    assert job.called("join_trainer") == [(2,)] and job.called("lose_trainer") == []
    assert [simulation for _, simulation in job.called("dispatch")] == [0, 1, 2, 1]


def test_simulations_with_steps_on_a_retired_trainer_run_again(make_job: MakeJob) -> None:
    job = streaming(make_job, trainer_spares=1)
    job.lacks = [0]
    job.event(Report, 1, after=2.0, values=((RETIRES, 5, 1.0),))
    job.event(Goodbye, 1, after=2.1)
    drain(job, [0], 20.0)
    job.event(Goodbye, 2, after=30.0)
    assert job.run() == 0 and job.summary["status"] == "complete"
    assert job.called("retire_trainer") == [(1,)] and job.summary["run_again"] == 1


def test_death_of_a_waiting_spare_causes_no_rerun(make_job: MakeJob) -> None:
    job = streaming(make_job, trainer_spares=1)
    die(job, 2, 0.5, signal=9)
    drain(job, [0, 1], 20.0)
    assert job.run() == 0 and job.called("lose_trainer") == [(2,)] and "run_again" not in job.summary
