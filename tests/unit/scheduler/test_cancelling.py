import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpidata.native.event import Cancel
from mpidata.scheduler.simulations import CANCELLED, COMPLETE, NONE, PENDING, RUNNING, Simulations

MakeJob = Callable[..., Any]


def cancels(job: Any, *ids: int, trainer: int = 0) -> None:
    job.event(Cancel, trainer, simulations=ids)


def test_cancelled_pending_simulation_never_runs(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=4)
    cancels(job, 2, 3, 2)
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")] == [0, 1]
    assert job.called("cancel") == [(2, -1, False), (3, -1, False)] and not job.called("cancel_group")
    assert job.summary["simulations"] == {"requested": 4, "complete": 2, "failed": 0, "cancelled": 2}
    assert job.summary["cancelled"] == [2, 3] and job.summary["status"] == "complete"
    last = (Path(job.plan.run) / "metrics.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["simulations"] == {"running": 0, "complete": 2, "failed": 0, "cancelled": 2}
    assert [(e["simulation"], e["steps"]) for e in job.events("simulation_cancelled")] == [(2, 0), (3, 0)]


def test_cancel_of_a_running_simulation_is_sent_to_trainers_before_its_group(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=3)
    job.steps = lambda simulation: 7

    def dispatch(group: int, simulation: int) -> bool:
        if simulation == 1:
            cancels(job, 1)
        return simulation != 1

    job.before["dispatch"] = dispatch
    assert job.run() == 0
    about = [call for call in job.calls if call[0] in ("cancel", "cancel_group")]
    assert about == [("cancel", 1, 0, False), ("cancel_group", 0, 1, 1), ("cancel", 1, 0, True)]
    assert sorted(job.called("expect")) == [(0, 7), (2, 7)]
    assert job.events("simulation_cancelled")[0]["steps"] == 7 and not job.events("run_again")
    assert job.summary["simulations"] == {"requested": 3, "complete": 2, "failed": 0, "cancelled": 1}


@pytest.mark.parametrize("how", ["dies", "raises", "gives up"])
def test_cancelled_simulation_neither_fails_nor_runs_again(make_job: MakeJob, how: str) -> None:
    job = make_job(groups=2, simulations=4, retries=2)
    runs = []

    def dispatch(group: int, simulation: int) -> bool:
        runs.append(simulation)
        if simulation == 1:
            cancels(job, 1)
        return simulation != 1

    job.before["dispatch"] = dispatch
    if how == "dies":
        job.before["cancel_group"] = lambda group, simulation, by_try: job.die(group, signal=9)
    else:
        (job.raises if how == "raises" else job.fails)[1] = "it diverged"
    assert job.run() == 0, job.summary
    assert sorted(runs) == [0, 1, 2, 3]
    assert job.summary["simulations"] == {"requested": 4, "complete": 3, "failed": 0, "cancelled": 1}
    assert job.summary["retries"] == [] and job.summary["set_aside"] == []


def test_validation_and_settled_simulations_are_not_cancelled(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=2, validation=1)
    job.before["end_of_stream"] = lambda: cancels(job, 0, 1, 2)
    cancels(job, 2)
    assert job.run() == 0
    assert not job.called("cancel")
    assert job.summary["simulations"] == {"requested": 3, "complete": 3, "failed": 0}


def test_cancel_settles_a_counted_simulation_immediately() -> None:
    simulations = Simulations(3, trainers=2)
    assert simulations.take(0) == 0 and simulations.close(0, 0, 5, failed=False)
    assert not simulations.hold(0, 0, by_try=1)
    assert simulations.cancel(0) == NONE and simulations.newly_cancelled == [0]
    assert simulations.settled == 1 and not simulations.is_awaited(0)
    assert not simulations.hold(1, 0, by_try=1), "what a trainer holds of it counts no more"
    assert simulations.cancel(0) is None and simulations.state(0) == CANCELLED
    assert simulations.lose(0) == (NONE, [])


def test_group_death_in_a_cancelled_simulation_costs_earlier_ones_no_try() -> None:
    simulations = Simulations(3, trainers=1, retries=0)
    assert simulations.take(0) == 0 and simulations.close(0, 0, 5, failed=False)
    assert simulations.take(0) == 1 and simulations.cancel(1) == 0 and simulations.state(1) == RUNNING
    assert simulations.lose(0) == (NONE, [0])
    assert simulations.state(0) == PENDING and simulations.counted_tries(0) == 0
    assert simulations.state(1) == CANCELLED and simulations.settled == 1


def test_cancel_removes_a_simulation_from_the_retry_queue() -> None:
    simulations = Simulations(2, trainers=1, retries=3)
    assert simulations.take(0) == 0 and not simulations.close(0, 0, 1, failed=True, again=True)
    assert simulations.cancel(0) == NONE and simulations.take(0) == 1 and simulations.take(1) == NONE


def test_cancelled_simulations_do_not_run_again_after_a_trainer_is_lost() -> None:
    simulations = Simulations(2, trainers=2)
    assert simulations.take(0) == 0 and simulations.close(0, 0, 5, failed=False) and simulations.cancel(0) == NONE
    assert simulations.take(0) == 1 and simulations.cancel(1) == 0
    simulations.lose_trainer(1)
    simulations.interrupt()
    assert simulations.go_on([0, 1]) == []
    assert not simulations.close(0, 1, 5, failed=False) and simulations.all_settled


def test_resumed_run_skips_cancelled_simulations_and_notifies_trainers(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=4)
    job.scheduler.simulations.restore({0: 3}, {}, [], [0, 2])
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")] == [1, 3]
    assert job.called("cancel") == [(2, -1, False)], "the trainers are to know, too"
    assert job.scheduler.simulations.state(0) == COMPLETE
    assert job.summary["simulations"]["cancelled"] == 1 and not job.events("simulation_cancelled")


def test_checkpoint_lists_simulations_cancelled_while_pending_or_running(make_job: MakeJob) -> None:
    job = make_job(groups=1, simulations=4)
    simulations = job.scheduler.simulations
    assert simulations.take(0) == 0 and simulations.cancel(0) == 0 and simulations.cancel(3) == NONE
    assert json.loads(json.dumps(job.scheduler._state()))["cancelled"] == [0, 3]


def test_replay_cancels_a_simulation_only_if_all_trainers_cancel_it(make_job: MakeJob, tmp_path: Any) -> None:
    job = make_job(groups=1, trainers=2, simulations=3, replay=tmp_path)
    cancels(job, 2, trainer=1)
    cancels(job, 2, trainer=1)
    cancels(job, 1, trainer=0)
    cancels(job, 1, trainer=1)
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")] == [0, 2]
