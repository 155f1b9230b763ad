"""Changes of the number of loaders and groups while the job runs."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.native.event import Next
from mpidata.run.folder import RunFolder
from mpidata.run.scale_requests import Request, ask, take_answer

Make = Callable[..., Any]
NONE = {"groups": 0, "simulations": 0}


class Asked:
    """Requests to a job, and the answers after it has run."""

    def __init__(self, job: Any) -> None:
        self.run = RunFolder(job.plan.run)
        self.run.private.mkdir()
        self.requests: list[Request] = []

    def __call__(self, kind: str, count: int) -> None:
        self.requests.append(ask(self.run, 1, kind, count))

    @property
    def answers(self) -> list[tuple[bool, str]]:
        answers = [take_answer(self.run, request) for request in self.requests]
        return [(answer.refused, answer.sentence) for answer in answers if answer is not None]


@pytest.mark.parametrize("start", ["split", "spawn"])
def test_loaders_are_added(make_job: Make, start: str) -> None:
    job = make_job(**NONE, loaders=2, loader_start=start, fault_tolerance="ulfm", can_spawn=True)
    asked = Asked(job)
    job.before["serves"] = lambda n: asked("loaders", 5) if n == 1 else job.goodbye(0, after=1.0) if n == 4 else None
    assert job.run() == 0
    assert job.called("serves") == [(0,), (1,), (2,), (3,), (4,)]
    assert job.called("spawn_loader")[-3:] == [(2,), (3,), (4,)]
    sentence = "5 loaders from now on, there were 2: 3 to be started."
    assert asked.answers == [(False, sentence)]
    (event,) = job.events("scale")
    assert (event["loaders"], event["refused"], event["answer"]) == (5, False, sentence)
    assert job.summary["loaders"] == {"joined": 5, "lost": 0}


def test_added_loader_is_replaced_when_it_is_lost(make_job: Make) -> None:
    job = make_job(**NONE, loaders=1, fault_tolerance="ulfm", can_spawn=True)
    asked = Asked(job)

    def serves(loader: int) -> None:
        if loader == 0:
            asked("loaders", 2)
        elif loader == 1:
            job.lose_loader(1, after=0.5)
        else:
            job.goodbye(0, after=1.0)

    job.before["serves"] = serves
    assert job.run() == 0 and job.called("serves") == [(0,), (1,), (2,)]


def test_spare_loaders_are_used_if_none_can_be_spawned(make_job: Make) -> None:
    job = make_job(**NONE, loaders=1, loader_spares=2)
    asked = Asked(job)

    def serves(loader: int) -> None:
        if loader == 0:
            asked("loaders", 4)
            asked("loaders", 3)
        elif loader == 2:
            job.goodbye(0, after=1.0)

    job.before["serves"] = serves
    asked.requests.clear()
    assert job.run() == 0 and job.called("serves") == [(0,), (1,), (2,)]
    (refused, why), (done, told) = sorted(asked.answers, reverse=True)
    assert refused and why.startswith("4 loaders would be ") and "Start the job with more 'loaders.spares'." in why
    assert not done and told == "3 loaders from now on, there were 1: 2 of the spare ones."


@pytest.mark.parametrize(
    ("plan", "kind", "count", "why"),
    [
        ({"loaders": 0}, "loaders", 2, "This job has no loaders"),
        (NONE | {"loaders": 1}, "groups", 2, "This job needs no groups: it has no solvers"),
        ({"loaders": 1}, "loaders", 0, "There cannot be 0 loaders: give at least 1."),
        ({"loaders": 1}, "groups", -1, "There cannot be -1 groups: give at least 1."),
        ({"loaders": 1}, "scheduler", 2, "The number of 'scheduler' of a job cannot be changed."),
        ({"loaders": 1}, "groups", 2, "2 groups would be 1 more, but the job has 0 to spare"),
    ],
)
def test_impossible_scale_requests_are_refused(
    make_job: Make, plan: dict[str, int], kind: str, count: int, why: str
) -> None:
    job = make_job(**plan)
    asked = Asked(job)
    asked(kind, count)
    job.before["serves"] = lambda loader: None if job.plan.groups else job.goodbye(0, after=1.0)
    assert job.run() == 0
    ((refused, sentence),) = asked.answers
    assert refused and sentence.startswith(why) and job.events("scale")[0]["refused"]


def test_loaders_are_removed_in_reverse_order_of_joining(make_job: Make) -> None:
    job = make_job(**NONE, loaders=3, fault_tolerance="ulfm", can_spawn=True)
    asked = Asked(job)

    def serves(loader: int) -> None:
        if loader == 2:
            asked("loaders", 4)
        elif loader == 3:
            asked("loaders", 1)
            job.goodbye(0, after=5.0)

    job.before["serves"] = serves
    assert job.run() == 0
    assert job.called("retires") == [(3,), (2,), (1,)] and job.called("rests") == [(2,), (1,)]
    assert [event["loader"] for event in job.events("loader_left")] == [3, 0, 1, 2]
    assert asked.answers[1] == (False, "1 loader from now on, there were 4: 3 to stop when done.")
    assert job.called("spawn_loader") == [(3,)] and job.summary["loaders"] == {"joined": 4, "lost": 0}


def test_starting_loader_is_removed_only_after_it_has_joined(make_job: Make) -> None:
    job = make_job(**NONE, loaders=2, fault_tolerance="ulfm", can_spawn=True)
    asked = Asked(job)

    def spawn(loader: int) -> bool:
        asked("loaders", 1)
        return False

    def retires(loader: int) -> bool:
        if loader == 1:
            job.loader_news.append((2, ""))  # the one that was started joins
        else:
            job.goodbye(0, after=2.0)
        return True

    job.before["spawn_loader"], job.before["retires"] = spawn, retires
    job.before["serves"] = lambda loader: asked("loaders", 3) if loader == 1 else None
    assert job.run() == 0
    assert job.called("retires") == [(1,), (2,)] and job.called("rests") == [(1,)]


def test_resting_loaders_are_the_first_to_serve_again(make_job: Make) -> None:
    job = make_job(**NONE, loaders=3)
    asked = Asked(job)

    def serves(loader: int) -> None:
        if len(job.called("serves")) == 3:
            asked("loaders", 1)
        elif len(job.called("serves")) == 4:
            job.goodbye(0, after=2.0)

    job.before["serves"] = serves
    job.before["rests"] = lambda loader: asked("loaders", 2) if loader == 2 else None
    assert job.run() == 0
    assert job.called("serves")[3:] in ([(1,)], [(2,)]) and job.summary["loaders"] == {"joined": 3, "lost": 0}
    assert asked.answers[1] == (False, "2 loaders from now on, there were 1: 1 of the spare ones.")


def test_loader_that_dies_while_leaving_is_lost_but_not_replaced(make_job: Make) -> None:
    job = make_job(**NONE, loaders=2, fault_tolerance="ulfm", can_spawn=True)
    asked = Asked(job)

    def retires(loader: int) -> bool:
        job.lose_loader(loader, after=1.0)
        job.goodbye(0, after=5.0)
        return False

    job.before["retires"] = retires
    job.before["serves"] = lambda loader: asked("loaders", 1) if loader else None
    assert job.run() == 0 and job.called("spawn_loader") == []
    assert job.called("lose_loader") == [(1, "")] and job.summary["loaders"]["lost"] == 1


def test_removal_of_loaders_is_refused_before_all_have_joined(make_job: Make) -> None:
    job = make_job(**NONE, loaders=2, loader_start="spawn")
    asked = Asked(job)

    def spawn(loader: int) -> bool:
        if loader == 1:
            asked("loaders", 1)
        return loader != 1

    job.before["spawn_loader"] = spawn
    job.before["serves"] = lambda loader: job.goodbye(0, after=2.0)
    assert job.run() in (0, 1000)
    ((refused, why),) = asked.answers
    assert refused and "have not all joined yet" in why


def test_groups_are_added(make_job: Make) -> None:
    job = make_job(groups=1, spares=1, simulations=20, can_spawn=True)
    asked = Asked(job)
    job.before["dispatch"] = slow(job, asked, {1: ("groups", 4)})
    assert job.run() == 0
    assert {group for group, _ in job.called("dispatch")} == {0, 1, 2, 3} and len(job.called("spawn")) == 2
    assert asked.answers == [(False, "4 groups from now on, there were 1: 1 of the spare ones and 2 to be started.")]
    assert job.summary["simulations"]["complete"] == 20


def slow(job: Any, asked: Asked, requests: dict[int, tuple[str, int]]) -> Callable[[int, int], bool]:
    """Let simulations take a second; `requests` are made as their simulations start."""

    def dispatch(group: int, simulation: int) -> bool:
        if simulation in requests:
            asked(*requests[simulation])
        job.event(Next, group, after=1.0, **job.close_running(group))
        return False

    return dispatch


def test_groups_are_removed_after_their_current_simulation(make_job: Make) -> None:
    job = make_job(groups=4, simulations=20, can_spawn=True)
    asked = Asked(job)
    job.before["dispatch"] = slow(job, asked, {5: ("groups", 1)})
    assert job.run() == 0
    dispatched = job.called("dispatch")
    assert len(dispatched) == 20 and len({group for group, simulation in dispatched if simulation > 8}) == 1
    assert asked.answers == [(False, "1 group from now on, there were 4: 3 to stop when done.")]
    assert job.summary["simulations"]["complete"] == 20 and job.called("spawn") == []
    assert len(job.events("rests")) == 3 and len(job.events("group_left")) == 4


@pytest.mark.parametrize(("start", "lifetime"), [("split", "pool"), ("spawn", "pool"), ("spawn", "simulation")])
def test_groups_are_added_removed_and_added_again(make_job: Make, start: str, lifetime: str) -> None:
    job = make_job(groups=2, simulations=40, can_spawn=True, start=start, lifetime=lifetime)
    asked = Asked(job)
    job.before["dispatch"] = slow(job, asked, {5: ("groups", 5), 15: ("groups", 1), 25: ("groups", 3)})
    running: list[int] = []
    begun: list[float] = []
    dispatch = job.before["dispatch"]

    def note(group: int, simulation: int) -> bool:
        begun.append(job.now)
        running.append(sum(time > job.now - 0.99 for time in begun))
        return bool(dispatch(group, simulation))

    job.before["dispatch"] = note
    assert job.run() == 0
    assert max(running) == 5 and running[23:26] == [1, 1, 1] and max(running[26:]) == 3, running
    assert [refused for refused, _ in asked.answers] == [False] * 3
    assert job.summary["simulations"]["complete"] == 40
