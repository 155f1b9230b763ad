"""The spawner if trainers may die while a group joins."""

import dataclasses
import threading

import pytest
from fake_mpi import FakeMPI, Library, make_spawner, news_of, say_at_once
from waiting import wait_until

from mpidata.errors import RankDiedError
from mpidata.native.constants import ANSWER_FAILED, ANSWER_READY
from mpidata.run import deadlines
from mpidata.run.plan import Plan

FAILED = 10


@pytest.fixture
def elastic(plan: Plan, library: Library) -> Plan:
    library.may_die, library.trainers = True, [0, 1, 2]
    return dataclasses.replace(plan, trainers=3, world=4, trainers_at_least=1)


def test_elastic_trainers_are_prepared_only_after_the_group_has_answered(
    mpi: FakeMPI, library: Library, elastic: Plan
) -> None:
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    assert news_of(spawner, 1) == [(7, "")]
    assert [name for name, _ in library.calls] == ["greet", "call", "prepare", "invite", "join", "link"]


def test_trainers_are_dismissed_and_prepared_again_if_one_is_busy(
    mpi: FakeMPI, library: Library, elastic: Plan
) -> None:
    library.busy = {1}
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    wait_until(lambda: spawner.news(True) == [] and len(library.called("prepare")) > 1)
    assert library.called("invite") == [] and len(library.called("dismiss")) >= len(library.called("prepare")) - 1
    library.busy.clear()
    assert news_of(spawner, 1) == [(7, "")]


def test_trainers_are_dismissed_if_one_does_not_answer_in_time(
    mpi: FakeMPI, library: Library, elastic: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "TRAINERS_ANSWER_S", 0.05)
    library.trainers = [0, 2]
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    wait_until(lambda: spawner.news(True) == [] and library.called("dismiss"))
    assert spawner.news(True) == [] and library.called("prepare") == [7]  # not called again before the answer
    library.trainers = [0, 1, 2]
    spawner.ready(1, 7, "group", ANSWER_READY)
    assert news_of(spawner, 1) == [(7, "")]


def test_joining_does_not_wait_for_a_dead_trainer(mpi: FakeMPI, library: Library, elastic: Plan) -> None:
    library.trainers = [0, 2]
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    wait_until(lambda: spawner.news(True) == [] and library.called("prepare"))
    assert spawner.news(True) == [] and library.called("invite") == []
    library.lost = {1}
    assert news_of(spawner, 1) == [(7, "")]


def test_group_that_fails_to_join_is_dismissed_and_the_job_continues(
    mpi: FakeMPI, library: Library, elastic: Plan
) -> None:
    library.joined = ANSWER_FAILED
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    assert news_of(spawner, 1) == [(7, "A trainer died, or it died itself, while it joined the job")]
    assert library.called("dismiss") == [7] and library.called("link") == []


def test_trainer_death_while_a_group_joins_ends_the_job(
    mpi: FakeMPI, library: Library, elastic: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_at_once(monkeypatch)
    library.joins[7] = threading.Event()
    spawner = make_spawner(elastic, library)
    spawner.start(7, [])
    wait_until(lambda: spawner.news(True) == [] and spawner.joining)
    library.lost = {1}
    with pytest.raises(RankDiedError, match="Trainer 1 died while the spawned group 7 joined the job"):
        news_of(spawner, 1)
