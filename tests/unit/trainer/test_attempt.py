"""While trainers agree and create communicators, the receive thread makes no MPI calls."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from mpidata.trainer.elastic import waiting
from mpidata.trainer.elastic.attempt import agree, come_together


class Communicator:
    """A communicator of living trainers with equal flags; records which calls are made while the thread is held."""

    def __init__(self) -> None:
        self.holds = self.tests = 0
        self.held: list[str] = []
        self.free: list[str] = []

    def hold(self, on: bool) -> None:
        self.holds += 1 if on else -1

    def _call(self, name: str) -> "Communicator":
        (self.held if self.holds else self.free).append(name)
        return self

    def Ack_failed(self) -> None: ...  # noqa: N802

    def Get_failed(self) -> Any:  # noqa: N802
        return SimpleNamespace(Get_size=lambda: 0, Free=lambda: None)

    def Iagree(self, flag: object) -> "Communicator":  # noqa: N802
        self.tests = 0
        return self._call("Iagree")

    def Test(self) -> bool:  # noqa: N802
        self._call("Test")
        self.tests += 1
        return self.tests == 2

    def Revoke(self) -> None:  # noqa: N802
        self._call("Revoke")

    def Shrink(self) -> "Communicator":  # noqa: N802
        return self._call("Shrink")

    def Dup(self) -> "Communicator":  # noqa: N802
        return self._call("Dup")


@pytest.fixture
def communicator(monkeypatch: pytest.MonkeyPatch) -> Any:
    communicator = Communicator()
    mpi = SimpleNamespace(Exception=OSError, GROUP_EMPTY=None, REQUEST_NULL=None, Intracomm=Communicator)
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=mpi))
    monkeypatch.setattr(waiting, "_hold", communicator.hold)
    return communicator


def test_receive_thread_pauses_during_the_mpi_calls_of_an_agreement(communicator: Any) -> None:
    # Between tests the thread runs, because a trainer that has not come yet may wait for it.
    assert agree(communicator, True, lambda seconds: None) == (True, True)
    assert communicator.held == ["Iagree", "Test", "Test"] and not communicator.free and not communicator.holds


def test_receive_thread_pauses_while_trainers_create_a_communicator(communicator: Any) -> None:
    come_together(communicator, lambda seconds: None)
    agreement = ["Iagree", "Test", "Test"]
    assert communicator.held == ["Revoke", "Shrink", *agreement, "Dup", *agreement]
    assert not communicator.free and not communicator.holds
