"""Stand-ins for MPI and the library, and the plan of a job that spawns."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_library import make_plan
from fake_mpi import FakeMPI, Library

from mpidata.run.plan import Plan
from mpidata.scheduler.spawning import spawner as spawning


@pytest.fixture
def mpi(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMPI]:
    fake = FakeMPI()
    monkeypatch.setitem(sys.modules, "mpi4py", fake)
    monkeypatch.setattr(spawning, "rank_program", lambda: Path("/bin/mpidata-rank"))
    yield fake
    for event in fake.returns.values():
        event.set()


@pytest.fixture
def library() -> Iterator[Library]:
    fake = Library()
    yield fake
    for event in fake.joins.values():
        event.set()


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "exits").mkdir()
    return make_plan(run=tmp_path, start="spawn", ranks_per_group=2, world=2)
