import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Goodbye, Held, Next, Report, Status
from mpidata.run.plan import Plan

MakeJob = Callable[..., Any]


@pytest.mark.parametrize("trainers, groups", [(1, 1), (2, 4), (3, 5), (3, 20)])
def test_every_simulation_runs_once_validation_first(make_job: MakeJob, trainers: int, groups: int) -> None:
    job = make_job(trainers=trainers, groups=groups, simulations=13, validation=4)
    job.steps = lambda simulation: simulation
    assert job.run() == 0
    dispatched = [simulation for _, simulation in job.called("dispatch")]
    assert dispatched == [13, 14, 15, 16, *range(13)]
    assert sorted(job.called("expect")) == [(simulation, simulation) for simulation in range(17)]
    assert len(job.called("no_more")) == groups
    assert sorted(job.called("gone")) == [(group,) for group in range(groups)]
    assert [call[0] for call in job.calls if call[0] not in ("dispatch", "expect", "no_more", "gone")] == [
        "validation",
        "end_of_stream",
        "all_gone",
        "close",
    ]
    summary = job.summary
    assert summary["status"] == "complete" and summary["error"] is None and summary["reason"] is None
    assert summary["simulations"] == {"requested": 17, "complete": 17, "failed": 0}
    assert summary["samples"]["received"] == sum(range(13)) == sum(summary["samples"]["per_trainer"])
    assert summary["samples"]["validation"] == 13 + 14 + 15 + 16
    assert summary["bytes"] == 16 * sum(range(17))
    assert len(summary["batches"]["per_trainer"]) == trainers


def test_end_of_stream_waits_for_the_last_trainer(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=4)
    seen = []

    def expect(simulation: int, steps: int) -> bool:
        job.event(Held, 0, simulation=simulation, by_try=1)
        job.event(Held, 1, after=3.0 + simulation, simulation=simulation, by_try=1)
        return False

    job.before["expect"] = expect
    job.before["end_of_stream"] = lambda: seen.append(job.now)
    assert job.run() == 0
    assert seen == [1006.0]
    assert [event["simulation"] for event in job.events("simulation_complete")] == [0, 1, 2, 3]


def test_the_job_waits_for_late_trainers_and_groups(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2)

    def end_of_stream() -> bool:
        job.goodbye(0)
        job.goodbye(1, after=500.0)
        return False

    def no_more(group: int) -> bool:
        job.finalize(group, after=800.0 * group)
        return False

    job.before |= {"end_of_stream": end_of_stream, "no_more": no_more}
    assert job.run() == 0
    assert job.now >= 1800
    assert job.summary["status"] == "complete"
    assert job.summary["seconds"] == pytest.approx(800, abs=1)


def test_summary_includes_statistics_received_after_the_goodbyes(make_job: MakeJob) -> None:
    job = make_job(trainers=2)
    job.event(Status, 0, statistics=[1, 0, 0, 1, 0, 100, 16, 0])
    assert job.run() == 0
    assert job.now < 1000.4
    assert job.summary["samples"]["received"] == 30


def test_job_waits_only_briefly_for_the_final_statistics_of_a_trainer(make_job: MakeJob) -> None:
    job = make_job()

    def end_of_stream() -> bool:
        job.event(Goodbye, 0)
        return False

    job.before["end_of_stream"] = end_of_stream
    assert job.run() == 0
    assert job.now < 1001


def test_simulations_without_steps_are_complete(make_job: MakeJob) -> None:
    job = make_job(trainers=3, groups=2, simulations=5)
    job.steps = lambda simulation: 0
    assert job.run() == 0
    assert job.summary["simulations"]["complete"] == 5
    assert job.summary["samples"]["received"] == 0


def test_job_without_simulations_completes(make_job: MakeJob) -> None:
    job = make_job(simulations=0)
    assert job.run() == 0
    assert job.summary["status"] == "complete"


def test_failed_simulation_is_listed_and_the_job_continues(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=5)
    job.fails = {3: "it diverged"}
    job.steps = lambda simulation: 2
    assert job.run() == 0
    assert (3, 2) in job.called("expect")
    assert job.summary["status"] == "complete"
    assert job.summary["simulations"] == {"requested": 5, "complete": 4, "failed": 1}
    (entry,) = job.summary["set_aside"]
    assert entry["simulation"] == 3 and entry["parameters"] == {"alpha": 6.0, "beta": 7.0}
    assert entry["cause"] == "given_up" and entry["how"] == "gave it up: it diverged" and entry["tries"] == 1
    (event,) = job.events("set_aside")
    assert {**entry, "time": event["time"], "event": "set_aside"} == event
    assert sorted(event["simulation"] for event in job.events("simulation_complete")) == [0, 1, 2, 4]


def test_groups_that_leave_after_one_simulation_complete_the_job(make_job: MakeJob) -> None:
    job = make_job(groups=3, simulations=3)
    job.before["dispatch"] = lambda group, simulation: job.finalize(group)
    assert job.run() == 0
    assert job.summary["status"] == "complete"
    assert job.summary["simulations"]["complete"] == 3


def test_job_fails_if_all_groups_leave_before_all_simulations_have_run(make_job: MakeJob) -> None:
    job = make_job(groups=3, simulations=5)
    job.before["dispatch"] = lambda group, simulation: job.finalize(group)
    assert job.run() == 1
    assert job.summary["status"] == "failed"
    assert "All 3 groups have left, but 2 of 5 simulations have not been run" in job.summary["error"]
    assert job.called("stop") == [()]


def test_remaining_group_runs_the_rest_after_another_leaves(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=6)
    job.before["dispatch"] = lambda group, simulation: job.finalize(0) if group == 0 else None
    assert job.run() == 0
    assert len([1 for group, _ in job.called("dispatch") if group == 1]) == 5
    assert job.summary["simulations"]["complete"] == 6


def test_progress_file_is_updated_while_the_job_runs(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=2)
    seen: list[dict[str, Any]] = []

    def dispatch(group: int, simulation: int) -> bool:
        job.event(Report, 0, after=1.0, values=(("loss", simulation, 1.0 / (1 + simulation)),))
        job.event(Next, group, after=3.0, **job.close_running(group))
        if simulation:
            seen.append(json.loads((job.plan.run / "progress.json").read_text()))
        return False

    job.before["dispatch"] = dispatch
    assert job.run() == 0
    assert seen[0]["report"] == {"loss": 1.0} and seen[0]["seconds"] >= 2.4
    assert seen[0]["simulations"] == {"requested": 2, "running": 1, "complete": 0, "failed": 0}
    assert job.summary["training"] == {"loss": {"first": 1.0, "last": 0.5}}
    last = json.loads((job.plan.run / "progress.json").read_text())
    assert last["simulations"]["complete"] == 2 and last["samples"]["received"] == 20


def test_job_logs_its_events_from_start_to_end(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=4)
    assert job.run() == 0
    names = [event["event"] for event in job.events()]
    assert names[0] == "start" and names[-1] == "end"
    assert names.count("dispatch") == names.count("simulation_complete") == 4
    assert names.count("group_left") == 2 and names.count("end_of_stream") == 1
    assert all(isinstance(event["time"], float) for event in job.events())
    assert job.events("dispatch")[0].keys() == {"time", "event", "simulation", "group"}


def test_ten_thousand_simulations_take_less_than_5_s_of_cpu_time(make_echo: MakeJob) -> None:
    job = make_echo(trainers=2, groups=8, simulations=10_000)
    started = time.process_time()
    assert job.run() == 0
    seconds = time.process_time() - started
    assert job.summary["simulations"]["complete"] == 10_000
    print(f"\n{10_000 / seconds:.0f} dispatches per second")
    assert seconds < 5


def test_plan_round_trips_through_its_text(make_job: MakeJob) -> None:
    plan = make_job().plan
    assert dataclasses.replace(Plan.parse(plan.text()), programs=plan.programs) == plan
