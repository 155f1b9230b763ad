"""The spawner with stand-ins for MPI and the library, because no test process may initialise MPI."""

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_library import make_plan
from fake_mpi import FakeMPI, Library, make_spawner, news_of, say_at_once
from waiting import wait_until

from mpidata.errors import LibraryError, RankDiedError
from mpidata.native.constants import ANSWER_READY
from mpidata.run import deadlines
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.messages import LibraryMessages
from mpidata.scheduler.spawning import spawner as spawning

FAILED = 10


def test_a_group_is_spawned_greeted_invited_joined_and_linked(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    spawner = make_spawner(plan, library)
    spawner.start(7, ["alpha=0.5", "beta=2.0"])
    assert news_of(spawner, 1) == [(7, "")]
    ((program, command, ranks, info),) = mpi.spawned
    assert (program, ranks) == ("/bin/mpidata-rank", 2)
    assert command == [str(plan.run), "--group", "7", "alpha=0.5", "beta=2.0"]
    assert info["bind_to"] == "none" and "host" not in info
    assert library.calls == [
        *[("greet", 7), ("prepare", 7), ("call", 7)],
        *[("invite", 7), ("join", 7), ("link", 7)],
    ]
    assert spawner.news(True) == [] and not spawner.joining


def test_spawned_loader_has_one_rank_and_separate_news(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    spawner = make_spawner(make_plan(run=plan.run, hosts=("node1",)), library)
    spawner.start(7, [], "loader")
    wait_until(lambda: spawner.news(True, "loader") == [(7, "")])
    ((_, command, ranks, info),) = mpi.spawned
    assert (command, ranks) == ([str(plan.run), "--loader", "7"], 1) and "host" not in info
    assert library.roles == {3} and spawner.news(True) == []
    (plan.run / "exits" / "loader-0008").write_text(json.dumps({"signal": 9, "exit": None, "joined": False}))
    mpi.returns[8] = threading.Event()
    spawner.start(8, [], "loader")
    assert spawner.news(True) == []
    ((number, error),) = spawner.news(True, "loader")
    assert number == 8 and error.startswith("Its program was killed by SIGKILL")


def test_groups_are_placed_on_the_hosts_of_the_plan(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    spawner = make_spawner(make_plan(run=plan.run, hosts=("node1", "node2")), library)
    spawner.start(0, [])
    news_of(spawner, 1)
    assert mpi.spawned[0][3]["host"] == "node1,node2"


def test_hanging_spawn_does_not_delay_others(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    mpi.returns[0] = threading.Event()
    spawner = make_spawner(plan, library)
    for group in range(3):
        spawner.start(group, [])
    assert sorted(news_of(spawner, 2)) == [(1, ""), (2, "")]
    assert spawner.news(True) == []
    mpi.returns[0].set()
    assert news_of(spawner, 1) == [(0, "")]


def test_groups_join_one_after_the_other(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    library.joins = {group: threading.Event() for group in range(3)}
    spawner = make_spawner(plan, library)
    for group in range(3):
        spawner.start(group, [])
    wait_until(lambda: len(library.called("greet")) == 3)
    for number in range(1, 4):
        wait_until(lambda: spawner.news(True) == [] and spawner.joining)
        for _ in range(20):
            assert spawner.news(True) == []
        assert len(library.called("invite")) == number
        library.joins[library.called("invite")[-1]].set()
        assert news_of(spawner, 1) == [(library.called("invite")[number - 1], "")]


def test_no_group_is_invited_if_there_is_no_work(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner._starts["group", 0].greeted.is_set())
    for _ in range(20):
        assert spawner.news(False) == []
    assert library.called("invite") == []
    assert news_of(spawner, 1) == [(0, "")]


def test_spawn_refused_by_mpi_is_reported(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    mpi.refuses[0] = "MPI_ERR_SPAWN: could not spawn processes."
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    ((group, error),) = news_of(spawner, 1)
    assert group == 0
    assert error == (
        "MPI cannot spawn it: MPI_ERR_SPAWN: could not spawn processes. Are there enough slots, and can this MPI "
        "spawn at all? `mpidata doctor` tries it"
    )
    assert spawner.news(True) == [] and library.calls == []


def test_library_error_while_greeting_is_reported(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    library.statuses["greet", 0] = FAILED
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    assert news_of(spawner, 1) == [(0, "MPI failed")]


def test_missing_rank_program_is_reported(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> Path:
        raise FileNotFoundError("mpidata-rank is not built")

    monkeypatch.setattr(spawning, "rank_program", missing)
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    ((_, error),) = news_of(spawner, 1)
    assert "mpidata-rank is not built" in error


def write_exit(plan: Plan, group: int, rank: int, **values: Any) -> None:
    path = PlannedRun(RunFolder(plan.run), plan).group_exit(group, rank)
    path.write_text(json.dumps({"signal": None, "exit": None, **values}))


@pytest.mark.parametrize(
    "values, how",
    [
        ({"exit": 127, "error": "There is no program ./rod."}, "There is no program ./rod"),
        ({"exit": 0}, "Its program ended with exit status 0 without mpidata_init before it joined the job"),
        ({"signal": 11}, "Its program was killed by SIGSEGV before it joined the job"),
    ],
)
def test_program_that_ends_before_joining_is_reported(
    mpi: FakeMPI, library: Library, plan: Plan, values: dict[str, Any], how: str
) -> None:
    mpi.returns[3] = threading.Event()  # MPI_Comm_spawn would hang
    spawner = make_spawner(plan, library)
    spawner.start(3, [])
    assert spawner.news(True) == []
    write_exit(plan, 3, 1, **values)
    write_exit(plan, 3, 0, signal=15, told=True)  # because rank 1 has ended
    assert news_of(spawner, 1) == [(3, how)]


def test_program_that_never_joins_is_reported_after_the_deadline(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpi.returns[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    assert spawner.news(True) == []
    monkeypatch.setattr(deadlines, "SPAWN_S", 0.2)
    assert news_of(spawner, 1) == [(0, "It did not join the job within 0.2 s")]


def test_group_that_dies_while_waiting_for_its_turn_is_not_invited(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    library.joins[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner.news(True) == [] and spawner.joining)
    spawner.start(1, [])
    wait_until(lambda: spawner._starts["group", 1].greeted.is_set())
    write_exit(plan, 1, 0, signal=9)
    ((group, error),) = news_of(spawner, 1)
    assert group == 1 and "was killed by SIGKILL" in error
    library.joins[0].set()
    assert news_of(spawner, 1) == [(0, "")]
    assert library.called("invite") == [0]


def told(plan: Plan) -> str:
    log = RunFolder(plan.run).idle_log
    return log.read_text() if log.exists() else ""


def test_unresponsive_trainer_is_named_and_waited_for_outside_mpi(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_at_once(monkeypatch)
    (plan.run / "logs").mkdir()
    plan = dataclasses.replace(plan, trainers=3, world=4)
    library.trainers = [0, 2]
    spawner = make_spawner(plan, library)
    spawner.start(7, [], "loader")
    wait_until(lambda: spawner.news(True, "loader") == [] and told(plan))
    assert told(plan) == (
        "mpidata: Trainer 1 has not answered for 0.05 s, so that the spawned loader 7 cannot join the job. Perhaps it "
        "was stopped (SIGSTOP), or its host hangs.\n"
    )
    assert library.called("call") == library.called("invite") == [] and not spawner.joining  # the job may end
    spawner.ready(1, 7, "loader", ANSWER_READY)
    wait_until(lambda: spawner.news(True, "loader") == [(7, "")])
    assert told(plan).count("\n") == 1


def test_group_that_hangs_before_joining_is_named_and_then_abandoned(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_at_once(monkeypatch)
    monkeypatch.setattr(deadlines, "SPAWN_S", 0.3)
    (plan.run / "logs").mkdir()
    library.answers[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    assert news_of(spawner, 1) == [(0, "It did not join the job within 0.3 s")]
    assert told(plan).startswith("mpidata: The spawned group 0 has not answered for 0.05 s")
    monkeypatch.setattr(deadlines, "SPAWN_S", 60.0)
    spawner.start(1, [])  # its turn comes now
    assert news_of(spawner, 1) == [(1, "")] and library.called("invite") == [1]


@pytest.mark.parametrize("how", ["its note", "MPI"])
def test_death_of_a_group_before_it_answers_fails_only_that_group(
    mpi: FakeMPI, library: Library, plan: Plan, how: str
) -> None:
    library.answers[0] = threading.Event()
    library.statuses["call", 0] = FAILED
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner.news(True) == [] and library.called("prepare"))
    if how == "MPI":
        library.answers[0].set()
        assert news_of(spawner, 1) == [(0, "MPI failed")]
    else:
        write_exit(plan, 0, 0, signal=9)
        ((group, error),) = news_of(spawner, 1)
        assert group == 0 and "was killed by SIGKILL" in error
    assert library.called("invite") == []


def test_slow_join_is_reported_and_waited_for(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_at_once(monkeypatch)
    (plan.run / "logs").mkdir()
    library.joins[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner.news(True) == [] and told(plan))
    assert told(plan).startswith("mpidata: A trainer or the spawned group 0 has not answered for 0.05 s")
    assert spawner.joining
    library.joins[0].set()
    assert news_of(spawner, 1) == [(0, "")]


def test_group_that_vanishes_while_joining_ends_the_job(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_at_once(monkeypatch)
    library.joins[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner.news(True) == [] and spawner.joining)
    library.dead.add(0)
    with pytest.raises(RankDiedError, match="The spawned group 0 died while it joined the job"):
        news_of(spawner, 1)


@pytest.mark.parametrize("answers", [True, False])
def test_group_that_dies_while_joining_ends_the_job(
    mpi: FakeMPI, library: Library, plan: Plan, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(deadlines, "JOIN_GROUP_S", 0.2)
    library.statuses["join", 0] = FAILED
    if not answers:
        library.joins[0] = threading.Event()
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    wait_until(lambda: spawner.news(True) == [] and spawner.joining or spawner._joining and spawner._joining.error)
    write_exit(plan, 0, 1, signal=9)
    with pytest.raises(RankDiedError, match="The spawned group 0 died while it joined the job") as caught:
        news_of(spawner, 1)
    assert ("MPI failed" if answers else "no answer") in str(caught.value)
    assert f"mpidata run --resume {plan.run}" in str(caught.value)


def test_link_error_is_raised(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    library.statuses["link", 0] = FAILED
    spawner = make_spawner(plan, library)
    spawner.start(0, [])
    with pytest.raises(LibraryError, match="MPI failed"):
        news_of(spawner, 1)


def test_library_messages_spawn_groups(mpi: FakeMPI, library: Library, plan: Plan) -> None:
    messages = LibraryMessages(plan)
    messages._library = library
    library.ready = messages.ready
    assert messages.can_spawn and messages.spawned(True) == [] and not messages.joining
    messages.spawn(4, ["alpha=1.0"])
    wait_until(lambda: messages.spawned(True) == [(4, "")])
    assert mpi.spawned[0][1][-1] == "alpha=1.0"
