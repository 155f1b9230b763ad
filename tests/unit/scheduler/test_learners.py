"""The learner: which rank is asked, what replaces a lost one, and when it leaves."""

from collections.abc import Callable
from typing import Any

from mpidata.native.event import Next

Make = Callable[..., Any]


class Sampling:
    """Stands for a RemoteSampling; records which learners it was to ask."""

    def __init__(self) -> None:
        self.needed, self.told = True, []

    def serves(self, learner: int) -> None:
        self.told.append(learner)

    def lost(self, learner: int) -> None:
        self.told.append(~learner)


def with_sampling(job: Any) -> Sampling:
    sampling = job.scheduler.learners._sampling = Sampling()
    return sampling


def test_learner_is_used_once_ready_and_leaves_after_the_end_of_stream(make_job: Make) -> None:
    job = make_job(learner=1)
    sampling = with_sampling(job)
    assert job.run() == 0
    assert job.called("teaches") == [(0,)] and job.called("release_learner") == [(0,)] and sampling.told == [0]
    assert job.summary["learner"] == {"joined": 1, "lost": 0}
    names = [call[0] for call in job.calls]
    assert names.index("end_of_stream") < names.index("release_learner") < names.index("all_gone")


def test_spare_replaces_a_lost_learner(make_job: Make) -> None:
    job = make_job(learner=1, learner_spares=1, fault_tolerance="ulfm")
    sampling = with_sampling(job)
    job.before["dispatch"] = lambda group, simulation: job.now > 1000 or job.lose_loader(0, kind="learner")
    assert job.run() == 0, job.summary
    assert job.called("teaches") == [(0,), (1,)] and sampling.told[:3] == [0, ~0, 1]
    (lost,) = job.events("learner_lost")
    assert (lost["learner"], lost["cause"]) == (0, "signal")
    assert job.summary["learner"] == {"joined": 2, "lost": 1}


def test_job_fails_if_the_last_learner_is_lost_before_the_last_draw(make_job: Make) -> None:
    job = make_job(learner=1, fault_tolerance="ulfm")
    with_sampling(job)
    job.before["dispatch"] = lambda group, simulation: job.lose_loader(0, kind="learner") or False
    assert job.run() == 1
    assert "No learner is left: the last one, learner 0, was killed by SIGKILL" in job.summary["error"]
    assert "learner-0.log" in job.summary["error"]


def test_learner_death_after_the_last_draw_does_not_fail_the_job(make_job: Make) -> None:
    job = make_job(learner=1, fault_tolerance="ulfm")
    with_sampling(job).needed = False
    job.before["dispatch"] = lambda group, simulation: job.now > 1000 or job.lose_loader(0, kind="learner")
    assert job.run() == 0, job.summary
    assert job.summary["learner"] == {"joined": 1, "lost": 1}


def test_loss_of_three_learners_at_the_same_call_fails_the_job(make_job: Make) -> None:
    job = make_job(learner=1, learner_spares=4, fault_tolerance="ulfm")
    with_sampling(job)
    job.before["dispatch"] = lambda group, simulation: False
    job.before["teaches"] = lambda number: job.lose_loader(number, after=1.0, kind="learner", item="draw 7")
    assert job.run() == 1
    assert "3 learners were lost at the same call of the sampler, 'draw'. Learner 2, the last" in job.summary["error"]


def test_losses_of_learners_at_different_calls_do_not_fail_the_job(make_job: Make) -> None:
    job = make_job(learner=1, learner_spares=4, fault_tolerance="ulfm")
    with_sampling(job)
    job.before["dispatch"] = lambda group, simulation: (
        job.now > 1005 or job.event(Next, group, after=6.0, **job.close_running(group)) or False
    )
    job.before["teaches"] = lambda number: (
        number < 4 and job.lose_loader(number, after=1.0, kind="learner", item=f"draw {number}")
    )
    assert job.run() == 0, job.summary
    assert job.summary["learner"]["lost"] == 4
