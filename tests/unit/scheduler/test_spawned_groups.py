import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mpidata.errors import RankDiedError
from mpidata.native.event import Next, Stop

MakeJob = Callable[..., Any]


def times(job: Any, name: str) -> list[float]:
    """Return the times of a call, filled while the job runs."""
    seen: list[float] = []
    before = job.before.get(name)

    def note(*values: Any) -> bool | None:
        seen.append(job.now - 1000)
        return before(*values) if before else None

    job.before[name] = note
    return seen


def test_job_completes_with_spawned_groups_only(make_job: MakeJob) -> None:
    job = make_job(start="spawn", groups=3, simulations=8)
    assert job.run() == 0
    assert job.called("spawn") == [(0, ()), (1, ()), (2, ())]
    assert sorted(job.called("gone")) == [(0,), (1,), (2,)]
    assert job.summary["simulations"]["complete"] == 8
    names = [event["event"] for event in job.events()]
    assert names.count("spawn") == names.count("group_joined") == names.count("group_left") == 3


def test_no_more_groups_are_spawned_than_there_are_simulations(make_job: MakeJob) -> None:
    job = make_job(start="spawn", groups=5, simulations=2)
    assert job.run() == 0
    assert len(job.called("spawn")) == 2


@pytest.mark.parametrize("start", ["split", "spawn"])
def test_lost_group_is_replaced_by_a_spawned_one(make_job: MakeJob, start: str) -> None:
    job = make_job(start=start, can_spawn=True, groups=1, simulations=4, retries=1)
    died = times(job, "lose")
    spawned = times(job, "spawn")
    job.before["dispatch"] = lambda group, simulation: job.die(0, signal=11) if (group, simulation) == (0, 1) else None
    assert job.run() == 0
    assert job.called("dispatch") == [(0, 0), (0, 1), (1, 1), (1, 2), (1, 3)]
    assert job.called("spawn")[-1] == (1, ()) and spawned[-1] - died[0] < 0.3
    assert job.summary["status"] == "complete" and job.summary["lost_groups"] == 1


def test_job_continues_with_fewer_groups_without_spawning(make_job: MakeJob) -> None:
    job = make_job(groups=2, simulations=6, retries=1)
    job.before["dispatch"] = lambda group, simulation: job.die(0, signal=11) if group == 0 else None
    assert job.run() == 0
    assert job.called("spawn") == [] and job.summary["status"] == "complete"


def test_failed_spawn_is_retried_with_growing_pauses(make_job: MakeJob) -> None:
    job = make_job(start="spawn", groups=1, simulations=3, retries=3)

    def spawn(group: int, values: tuple[str, ...]) -> bool:
        if group < 3:
            job.news.append((group, "There are no slots"))
        return group == 3

    job.before["spawn"] = spawn
    spawned = times(job, "spawn")
    assert job.run() == 0
    pauses = [b - a for a, b in itertools.pairwise(spawned)]
    assert pauses == pytest.approx([0.5, 1.0, 2.0], abs=0.3)
    assert job.summary["status"] == "complete"
    assert [(event["error"], event["again"]) for event in job.events("spawn_failed")] == [
        ("There are no slots", True)
    ] * 3


def test_place_is_abandoned_after_repeated_failed_spawns(make_job: MakeJob) -> None:
    job = make_job(start="spawn", groups=2, simulations=6, retries=1)
    job.before["spawn"] = lambda group, values: group == 0 or bool(job.news.append((group, "There are no slots")))
    job.before["dispatch"] = lambda group, simulation: bool(
        job.event(Next, group, after=3.0, **job.close_running(group))
    )
    assert job.run() == 0
    # Group 0 has asked for work meanwhile: spawning works, so the count starts again.
    assert [group for group, _ in job.called("spawn")] == [0, 1, 2, 3]
    assert [event["again"] for event in job.events("spawn_failed")] == [True, True, False]
    assert job.summary["status"] == "complete" and job.scheduler.groups.given_up == 1


def test_the_job_fails_when_no_group_can_be_spawned(make_job: MakeJob) -> None:
    job = make_job(start="spawn", groups=3, ranks_per_group=2, simulations=6, retries=1)

    def spawn(group: int, values: tuple[str, ...]) -> bool:
        (job.plan.run / "exits" / f"group-{group:04d}-1").write_text('{"exit": 127, "signal": null}')
        return bool(job.news.append((group, "Its program could not be started")))

    (job.plan.run / "exits").mkdir(exist_ok=True)
    job.before["spawn"] = spawn
    assert job.run() == 1
    log = job.plan.run / "logs" / "group-0005-solver-1.log"
    assert job.summary["log"] == str(log) and f"Its output is in {log}. Fix the error" in job.summary["error"]
    assert job.summary["status"] == "failed" and len(job.called("spawn")) == 6
    assert "could not be started, and no group is left. Its program could not be started" in job.summary["error"]
    assert not job.summary.get("died")
    assert job.called("stop") == [()]


@pytest.mark.parametrize("lifetime", ["pool", "simulation"])
@pytest.mark.parametrize("groups", [1, 8])
def test_job_may_be_restarted_if_spawned_groups_no_longer_join(make_job: MakeJob, groups: int, lifetime: str) -> None:
    job = make_job(start="spawn", lifetime=lifetime, groups=groups, simulations=100, retries=2)
    fails: list[tuple[float, int]] = []
    usual = job.spawned

    def spawn(group: int, values: tuple[str, ...]) -> bool:
        if group < groups:
            return True
        fails.append((job.now + 120, group))
        return False

    def spawned(invite: bool) -> list[tuple[int, str]]:
        due = [item for item in fails if item[0] <= job.now]
        fails[:] = [item for item in fails if item not in due]
        return usual(invite) + [(group, "It did not join the job within 120 s") for _, group in due]

    def dispatch(group: int, simulation: int) -> bool:
        if simulation < 2 * groups:
            job.event(Next, group, after=10.0, **job.close_running(group))
        elif lifetime == "pool":
            job.die(group, signal=11)
        return False

    job.before |= {"spawn": spawn, "dispatch": dispatch}
    job.spawned = spawned
    assert job.run() == 1
    assert job.summary["died"] is True and job.now < 1000 + 500
    assert "could not be started, and no group is left. It did not join the job" in job.summary["error"]


def test_job_may_be_restarted_after_a_group_died_while_joining(make_job: MakeJob) -> None:
    job = make_job(start="spawn")

    def spawned(invite: bool) -> list[tuple[int, str]]:
        raise RankDiedError("The spawned group 0 died while it joined the job")

    job.spawned = spawned
    assert job.run() == 1
    assert job.summary["died"] is True and "died while it joined" in job.summary["error"]


def test_failed_spawn_after_the_last_simulation_does_not_fail_the_job(make_job: MakeJob) -> None:
    job = make_job(can_spawn=True, groups=2, simulations=6, retries=0)

    def dispatch(group: int, simulation: int) -> bool:
        if group == 0:
            return bool(job.die(0, signal=11))
        job.event(Next, group, after=1.0, **job.close_running(group))
        return False

    def end_of_stream() -> bool:
        job.news.append((2, "It did not join the job"))
        job.goodbye(0, after=3.0)
        return False

    job.before |= {"dispatch": dispatch, "spawn": lambda group, values: False, "end_of_stream": end_of_stream}
    assert job.run() == 0
    assert job.called("spawn") == [(2, ())] and len(job.events("spawn_failed")) == 1
    assert job.summary["status"] == "complete" and job.summary["simulations"]["failed"] == 1


@pytest.mark.parametrize("end", ["die", "leave"])
def test_program_that_always_ends_before_its_first_simulation_fails_the_job(make_job: MakeJob, end: str) -> None:
    job = make_job(start="spawn", groups=2, simulations=6, retries=2)

    def spawned(invite: bool) -> list[tuple[int, str]]:
        news, job.news = job.news, []
        for group, _ in news:
            job.die(group, exit=1) if end == "die" else job.finalize(group)
        return news

    job.spawned = spawned
    assert job.run() == 1
    assert len(job.called("spawn")) == 6 and job.called("dispatch") == []
    assert ("No group is left" if end == "die" else "groups have left") in job.summary["error"]


@pytest.mark.parametrize("lifetime", ["pool", "simulation"])
def test_stop_ends_the_job_while_groups_are_being_spawned(make_job: MakeJob, lifetime: str) -> None:
    job = make_job(start="spawn", lifetime=lifetime, groups=2, simulations=100)
    job.before["spawn"] = lambda group, values: False

    def stop() -> None:
        if not job.stopped:
            job.news += [(0, ""), (1, "It is too late")]

    job.before["stop"] = stop
    job.event(Stop, 0, after=1.0, text="left")
    assert job.run() == 0
    assert job.called("dispatch") == [] and len(job.called("spawn")) == 2
    assert job.summary["status"] == "stopped" and job.now < 1003
    assert job.summary["retries"] == job.summary["set_aside"] == []
