"""`lifetime: simulation`: each simulation has a spawned group of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpidata.config import load_job
from mpidata.errors import JobFileError
from mpidata.native.event import Next, Stop

MakeJob = Callable[..., Any]


def test_each_simulation_has_a_group_of_its_own(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=2, simulations=5)
    assert job.run() == 0
    values = [(f"alpha={2.0 * i}", f"beta={2.0 * i + 1}", f"simulation={i}", "try=1") for i in range(5)]
    assert job.called("spawn") == list(enumerate(values))
    assert sorted(job.called("dispatch")) == [(i, i) for i in range(5)]
    assert sorted(job.called("no_more")) == [(i,) for i in range(5)]
    assert job.summary["simulations"]["complete"] == 5


def test_groups_that_leave_after_their_simulation_complete_the_job(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=2, simulations=5)
    job.before["dispatch"] = lambda group, simulation: job.finalize(group)
    assert job.run() == 0
    assert len(job.called("spawn")) == 5 and job.called("no_more") == []
    assert job.summary["simulations"]["complete"] == 5


def test_no_more_groups_run_concurrently_than_there_are_places(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=2, simulations=6)
    most = 0

    def dispatch(group: int, simulation: int) -> bool:
        nonlocal most
        most = max(most, sum(running >= 0 for running in job.running))
        job.event(Next, group, after=2.0, **job.close_running(group))
        return False

    job.before["dispatch"] = dispatch
    alive = []
    job.before["spawn"] = lambda group, values: alive.append(len(job.scheduler.groups.alive))
    assert job.run() == 0
    assert max(alive) < 2 and len(alive) == 6


def test_retry_of_a_simulation_gets_the_same_values_in_a_new_group(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=1, simulations=2, retries=1)
    job.before["dispatch"] = lambda group, simulation: job.die(0, signal=11) if group == 0 else None
    assert job.run() == 0
    first, again, second = job.called("spawn")
    assert first == (0, ("alpha=0.0", "beta=1.0", "simulation=0", "try=1"))
    assert again == (1, (*first[1][:-1], "try=2")) and second[1] != first[1]
    assert job.summary["retries"][0]["simulation"] == 0 and job.summary["simulations"]["complete"] == 2


@pytest.mark.parametrize("end", ["die", "leave"])
def test_simulation_is_set_aside_if_its_groups_never_request_it(make_job: MakeJob, end: str) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=1, simulations=3, retries=1)
    usual = job.spawned

    def spawned(invite: bool) -> list[tuple[int, str]]:
        for group, _ in list(job.news):
            if job.called("spawn")[group][1][0] == "alpha=2.0":
                job.news.remove((group, ""))
                job.die(group, exit=2) if end == "die" else job.finalize(group)
                return [(group, "")]
        return usual(invite)  # type: ignore[no-any-return]

    job.spawned = spawned
    assert job.run() == 0
    (entry,) = job.summary["set_aside"]
    assert entry["simulation"] == 1 and entry["tries"] == 2
    assert entry["how"] == ("ended with exit status 2" if end == "die" else "left without requesting it")
    assert job.summary["simulations"] == {"requested": 3, "complete": 2, "failed": 1}


def test_failed_spawn_does_not_count_as_a_try(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=1, simulations=2, retries=1)
    job.before["spawn"] = lambda group, values: group != 0 or bool(job.news.append((group, "There are no slots")))
    assert job.run() == 0
    assert job.tries == {0: 1, 1: 1} and job.summary["retries"] == []
    assert [values[0] for _, values in job.called("spawn")] == ["alpha=0.0", "alpha=0.0", "alpha=2.0"]


def test_group_that_requests_work_after_a_stop_is_released(make_job: MakeJob) -> None:
    job = make_job(start="spawn", lifetime="simulation", groups=1, simulations=100)
    job.before["spawn"] = lambda group, values: False

    def stop() -> bool:
        if not job.stopped:
            job.news.append((0, ""))
            job.goodbye(0)
        job.stopped = True
        return False  # the group's request is under way

    job.before["stop"] = stop
    job.event(Stop, 0, after=1.0, text="left")
    assert job.run() == 0
    assert job.called("no_more") == [(0,)] and job.called("dispatch") == []
    assert job.summary["set_aside"] == []


def test_every_name_allowed_in_program_arguments_has_a_value(make_job: MakeJob, tmp_path: Path) -> None:
    """The scheduler fills in every name that `check` accepts with `lifetime: simulation`."""
    job = make_job(start="spawn", lifetime="simulation", simulations=1)
    assert job.run() == 0
    names = [value.partition("=")[0] for value in job.called("spawn")[0][1]]
    assert names.pop() == "try"  # only `solvers.case` uses it
    program = ["python", "-c", "0", *(f"{{{name}}}" for name in names)]
    assert program[3:] == ["{alpha}", "{beta}", "{simulation}"]
    text = yaml.safe_dump(
        {
            "trainers": {"program": ["python", "-c", "0"]},
            "solvers": {"program": program, "start": "spawn", "lifetime": "simulation"},
            "parameters": {"count": 1, "space": {"alpha": [0.0, 1.0], "beta": [0.0, 1.0]}},
            "fields": {"u": {"shape": []}},
        }
    )
    (tmp_path / "job.yaml").write_text(text)
    assert load_job(tmp_path / "job.yaml").solvers.program == tuple(program)
    (tmp_path / "job.yaml").write_text(text.replace("{simulation}", "{group}"))
    with pytest.raises(JobFileError, match=r"The names are simulation, alpha, beta|Did you mean"):
        load_job(tmp_path / "job.yaml")
