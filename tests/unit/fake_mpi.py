"""Stand-ins for an MPI that spawns, and for the library that the spawner calls."""

import threading
from types import ModuleType
from typing import Any

import pytest
from waiting import wait_until

from mpidata.native.constants import ANSWER_BUSY, ANSWER_JOINED, ANSWER_READY, SUCCESS
from mpidata.run import deadlines
from mpidata.run.plan import Plan
from mpidata.scheduler.spawning.spawner import Spawner


class MPIError(Exception):
    """In place of MPI.Exception."""


class Info(dict[str, str]):
    """In place of MPI.Info."""

    Create = classmethod(lambda cls: cls())
    Set = dict.__setitem__


class FakeMPI(ModuleType):
    """mpi4py whose module MPI is this same object."""

    Exception = MPIError
    Info = Info

    def __init__(self) -> None:
        super().__init__("mpi4py")
        self.MPI = self.COMM_SELF = self
        self.spawned: list[tuple[Any, ...]] = []
        self.returns: dict[int, threading.Event] = {}  # by group: when its spawn returns, if not at once
        self.refuses: dict[int, str] = {}

    def Spawn(self, program: str, command: list[str], maxprocs: int, info: Info) -> "FakeMPI":  # noqa: N802
        group = int(command[2])
        self.spawned.append((program, command, maxprocs, info))
        if group in self.returns:
            self.returns[group].wait(30)
        if group in self.refuses:
            raise MPIError(self.refuses[group])
        return self

    def py2f(self) -> int:
        return 77


class Library:
    """Records calls in order, and answers each with a status."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.roles: set[int] = set()
        self.statuses: dict[tuple[str, int], int] = {}
        self.answers: dict[int, threading.Event] = {}  # by group: when a call answers, if not at once
        self.trainers = [0]  # they answer at once: ready or `busy`, and `joined` if they may die
        self.busy: set[int] = set()
        self.lost: set[int] = set()
        self.joined = ANSWER_JOINED
        self.may_die = False
        self.ready: Any = lambda trainer, group, kind, answer: None
        self.dead: set[int] = set()  # that MPI reports
        self.joins: dict[int, threading.Event] = {}  # by group: when its join returns, if not at once

    def _answer(self, name: str, group: int) -> int:
        self.calls.append((name, group))
        return self.statuses.get((name, group), SUCCESS)

    def mpidata_scheduler_greet(self, comm: int, role: int, group: int, bridge: Any) -> int:
        assert comm == 77
        self.roles.add(role)
        bridge._obj.value = 100 + group
        return self._answer("greet", group)

    def mpidata_scheduler_prepare(self, role: int, group: int) -> int:
        status = self._answer("prepare", group)
        for trainer in self.trainers:
            answer = ANSWER_BUSY if trainer in self.busy else ANSWER_READY
            self.ready(trainer, group, "loader" if role == 3 else "group", answer)
        return status

    def mpidata_scheduler_trainer_lives(self, trainer: int, yes: Any) -> int:
        yes._obj.value = trainer not in self.lost
        return SUCCESS

    def mpidata_scheduler_dismiss(self, role: int, group: int) -> int:
        return self._answer("dismiss", group)

    def mpidata_scheduler_call(self, bridge: Any) -> int:
        group = bridge.value - 100
        if group in self.answers:
            self.answers[group].wait(30)
        return self._answer("call", group)

    def mpidata_scheduler_has_died(self, bridge: Any, yes: Any) -> int:
        yes._obj.value = bridge.value - 100 in self.dead
        return SUCCESS

    def mpidata_scheduler_invite(self, role: int, group: int) -> int:
        self.roles.add(role)
        status = self._answer("invite", group)
        for trainer in self.trainers if self.may_die else ():
            self.ready(trainer, group, "loader" if role == 3 else "group", self.joined)
        return status

    def mpidata_scheduler_join(self, bridge: Any, comm: Any) -> int:
        group = bridge.value - 100
        if group in self.joins:
            self.joins[group].wait(30)
        comm._obj.value = 200 + group
        return self._answer("join", group)

    def mpidata_scheduler_link(self, role: int, group: int, comm: Any) -> int:
        assert comm.value == 200 + group
        return self._answer("link", group)

    def mpidata_last_error(self) -> bytes:
        return b"MPI failed"

    def called(self, name: str) -> list[int]:
        return [group for called, group in self.calls if called == name]


def make_spawner(plan: Plan, library: Library) -> Spawner:
    spawner = Spawner(plan, library)  # type: ignore[arg-type]
    library.ready = spawner.ready
    return spawner


def news_of(spawner: Spawner, count: int, invite: bool = True) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []

    def enough() -> bool:
        found.extend(spawner.news(invite))
        return len(found) >= count

    wait_until(enough)
    return found


def say_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "SAY_JOIN_S", 0.05)
    monkeypatch.setattr(deadlines, "JOIN_GROUP_S", 0.05)
