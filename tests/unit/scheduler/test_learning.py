"""Simulations whose parameters are drawn during the job are dispatched once the parameters are known."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Cancel
from mpidata.sampling.losses.table import LossTable
from mpidata.sampling.queue import Queue

MakeJob = Callable[..., Any]


class Sampler:
    """Stands for a Learner; draws two simulations each time it has been asked twice."""

    def __init__(self, job: Any) -> None:
        self.job, self.asked, self.most_ahead = job, 0, 0
        self.rows, job.parameters[: job.plan.simulations] = job.parameters.copy(), float("nan")
        job.scheduler.simulations.queue.draw(0)

    def turn(self, now: float, waiting: Queue, losses: LossTable) -> bool:
        self.asked += waiting.starved
        if not waiting.starved or self.asked % 2:
            return False
        first = waiting.drawn
        self.job.parameters[first : first + 2] = self.rows[first : first + 2]
        ahead = first - sum(simulation < self.job.plan.simulations for _, simulation in self.job.called("dispatch"))
        self.most_ahead = max(self.most_ahead, ahead)
        waiting.draw(min(first + 2, self.job.plan.simulations))
        return True

    def slow_s(self, now: float) -> float:
        return 30.5 if self.asked == 1 else 0.0

    def state(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize("plan", [{"groups": 3}, {"groups": 2, "start": "spawn", "lifetime": "simulation"}])
def test_simulations_are_dispatched_only_after_their_parameters_are_drawn(
    make_job: MakeJob, plan: dict[str, Any]
) -> None:
    job = make_job(simulations=7, validation=2, **plan)
    sampler = Sampler(job)
    job.scheduler._learner = sampler
    if plan.get("start") != "spawn":
        job.before["dispatch"] = lambda group, simulation: _finite(job, simulation)
    assert job.run() == 0
    assert job.summary["simulations"]["complete"] == 9
    assert sorted(simulation for _, simulation in job.called("dispatch")) == list(range(9))
    assert job.parameters.tolist() == sampler.rows.tolist() and sampler.most_ahead == 0
    assert "nan" not in str(job.called("spawn"))
    assert all(event["seconds"] == 30.5 for event in job.events("sampler_slow"))


@pytest.mark.parametrize("plan", [{"groups": 2}, {"groups": 1, "start": "spawn", "lifetime": "simulation"}])
def test_simulations_can_be_cancelled_before_their_parameters_are_drawn(
    make_job: MakeJob, plan: dict[str, Any]
) -> None:
    job = make_job(simulations=8, validation=1, **plan)
    job.scheduler._learner = Sampler(job)
    job.event(Cancel, 0, simulations=(1, 4, 6))
    assert job.run() == 0
    assert job.summary["cancelled"] == [1, 4, 6] and job.summary["simulations"]["complete"] == 6
    assert sorted(simulation for _, simulation in job.called("dispatch")) == [0, 2, 3, 5, 7, 8]


def _finite(job: Any, simulation: int) -> None:
    assert job.parameters[simulation, 0] >= 0
