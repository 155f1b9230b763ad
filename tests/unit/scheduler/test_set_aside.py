"""Simulations that fail are tried again, then set aside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpidata.run.logged_losses import read_losses

MakeJob = Callable[..., Any]


def test_simulation_that_fails_on_every_try_is_set_aside_with_its_last_output(make_job: MakeJob) -> None:
    job = make_job(groups=4, simulations=6, retries=1)
    for group in range(4):
        job.print(group, "".join(f"line {i} of {group}\n" for i in range(30)))
    job.before["dispatch"] = lambda group, simulation: job.die(group, exit=3) if simulation == 2 else None
    assert job.run() == 0
    assert job.summary["status"] == "complete"
    assert job.summary["simulations"] == {"requested": 6, "complete": 5, "failed": 1}
    assert job.summary["lost_groups"] == 2
    assert [entry["try"] for entry in job.summary["retries"]] == [1]
    (entry,) = job.summary["set_aside"]
    last = entry["group"]
    assert entry == {
        "simulation": 2,
        "parameters": {"alpha": 4.0, "beta": 5.0},
        "tries": 2,
        "group": last,
        "cause": "exit",
        "how": "ended with exit status 3",
        "signal": None,
        "exit": 3,
        "output": [f"line {i} of {last}" for i in range(20, 30)],
    }
    assert last == [group for group, simulation in job.called("dispatch") if simulation == 2][1]


def test_abandoned_simulation_is_set_aside_without_a_retry(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=5, retries=2)
    job.fails = {3: "it diverged"}
    job.print(0, "dt too large\n")
    job.print(1, "dt too large\n")
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")].count(3) == 1
    assert [call[0] for call in job.called("expect")].count(3) == 1 and job.tries[3] == 1
    assert job.summary["retries"] == []
    (entry,) = job.summary["set_aside"]
    assert (entry["cause"], entry["how"]) == ("given_up", "gave it up: it diverged")
    assert entry["tries"] == 1 and entry["output"] == ["dt too large"]
    assert job.summary["lost_groups"] == 0 and job.summary["status"] == "complete"


def test_simulation_that_raises_is_retried_and_then_set_aside(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=2, simulations=5, retries=2)
    job.raises = {3: "raised ValueError: no (rod.py line 2)"}
    assert job.run() == 0
    assert [simulation for _, simulation in job.called("dispatch")].count(3) == 3
    assert [call[0] for call in job.called("expect")].count(3) == 1 and job.tries[3] == 3
    assert [(entry["cause"], entry["how"]) for entry in job.summary["retries"]] == [("raised", job.raises[3])] * 2
    (entry,) = job.summary["set_aside"]
    assert (entry["cause"], entry["how"], entry["tries"]) == ("raised", job.raises[3], 3)
    assert job.summary["lost_groups"] == 0 and job.summary["status"] == "complete"


@pytest.mark.parametrize("tolerate, status", [(-1, 0), (2, 0), (1, 1), (0, 1)])
def test_job_fails_if_more_simulations_are_set_aside_than_tolerated(
    make_job: MakeJob, tolerate: int, status: int
) -> None:
    job = make_job(groups=2, simulations=10, tolerate=tolerate)
    job.fails = {3: "it diverged", 4: "it diverged"}
    assert job.run() == status
    if status:
        count = ["1 simulation was", "2 simulations were"][tolerate]
        assert f"{count} set aside, more than solvers.tolerate, {tolerate}" in job.summary["error"]


def test_a_program_that_always_fails_ends_the_job_early(make_job: MakeJob) -> None:
    job = make_job(groups=9, simulations=1000)
    job.before["dispatch"] = lambda group, simulation: job.die(group, exit=3)
    assert job.run() == 1
    assert "9 simulations were set aside, and none is complete" in job.summary["error"]
    assert "ended with exit status 3" in job.summary["error"]


def test_losses_read_from_the_events_equal_those_of_the_summary(make_job: MakeJob) -> None:
    job = make_job(groups=6, simulations=6, retries=1)
    job.fails = {4: "it diverged"}
    job.before["dispatch"] = lambda group, simulation: job.die(group, signal=6) if simulation == 2 else None
    assert job.run() == 0
    told = read_losses(job.plan.run / "events.jsonl")
    assert told == {key: job.summary[key] for key in ("lost_groups", "retries", "set_aside")}
    assert [len(told["retries"]), len(told["set_aside"]), told["lost_groups"]] == [1, 2, 2]
    assert read_losses(Path("/nowhere")) == {"lost_groups": 0, "retries": [], "set_aside": []}


@pytest.mark.parametrize("tolerate", [-1, 1])
def test_simulations_set_aside_before_a_resume_stay_set_aside(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, tolerate: int
) -> None:
    kept = [{"simulation": i, "cause": "given_up", "how": "gave it up: no", "group": 0} for i in (1, 3)]
    told = {"lost_groups": 0, "retries": [], "set_aside": kept}
    monkeypatch.setattr("mpidata.scheduler.restore.read_losses", lambda path: told)
    job = make_job(groups=2, simulations=5, attempt=2, tolerate=tolerate)
    assert job.run() == (1 if tolerate == 1 else 0)
    if tolerate == 1:
        assert len(job.called("dispatch")) <= 1
        assert "2 simulations were set aside, more than solvers.tolerate, 1" in job.summary["error"]
        assert f"mpidata run --resume {job.plan.run} --retry-set-aside" in job.summary["error"]
        return
    assert sorted(simulation for _, simulation in job.called("dispatch")) == [0, 2, 4]
    assert job.summary["simulations"] == {"requested": 5, "complete": 3, "failed": 2}
    assert [entry["simulation"] for entry in job.summary["set_aside"]] == [1, 3]
