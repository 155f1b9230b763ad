"""The memory that a plan needs."""

from pathlib import Path

import pytest
from launch_job import write_job

from mpidata.config import load_job
from mpidata.launch.starting.memory import memory_needs
from mpidata.run.plan import Plan


def test_constants_count_once_per_simulation(tmp_path: Path) -> None:
    fields = (
        "fields={u: {dtype: float32, shape: [512, 512]}, mesh: {dtype: float64, shape: [1000000], per: simulation}}"
    )
    given = [fields, "solvers.in_flight=4", "solvers.ranks_per_group=1", "buffer.capacity=1000"]
    _, trainer, constants, solver = memory_needs(Plan.of(load_job(write_job(tmp_path), given), tmp_path / "run"))
    assert "1.05 GB of it for 1000 samples of 1.05 MB" in trainer and "at most 12.2 MB" in solver
    assert constants == "each trainer: also 8 MB for each simulation of which it holds a sample (per: simulation)"


@pytest.mark.parametrize(
    ("changes", "trainer", "solver"),
    [
        (["buffer.capacity=1000"], "1.31 GB, 1.05 GB of it for 1000 samples of 1.05 MB", "at most 4.19 MB"),
        (["buffer.capacity=1000", "samples.window=4"], "for 1000 steps of 1.05 MB", "at most 4.19 MB"),
        (["buffer.capacity=500", "solvers.in_flight=8"], "786 MB, 524 MB of it", "at most 8.39 MB"),
    ],
)
def test_memory_needs_are_listed_for_each_role(tmp_path: Path, changes: list[str], trainer: str, solver: str) -> None:
    field = "fields={u: {dtype: float32, shape: [512, 512]}}"
    given = [field, "solvers.in_flight=4", "solvers.ranks_per_group=1", "validation={count: 2}", *changes]
    plan = Plan.of(load_job(write_job(tmp_path), given), tmp_path / "run")
    scheduler, *others = memory_needs(plan)
    assert scheduler.startswith("scheduler: ") and trainer in others[0] and "validation" in others[0]
    assert others[1].startswith("each solver rank: ") and solver in others[1]


def test_a_capacity_in_bytes_is_the_memory_of_a_buffer(tmp_path: Path) -> None:
    given = ["fields={u: {shape: [nodes, 3]}}", "buffer.capacity=2 GB"]
    lines = memory_needs(Plan.of(load_job(write_job(tmp_path), given), tmp_path / "run"))
    assert "nodes without a limit (lengths.<name>.at_most): their fields come on top of this, except in the" in lines[1]
    assert "each trainer: 2.26 GB, 2 GB of it for buffer.capacity; on top" in lines[2]
