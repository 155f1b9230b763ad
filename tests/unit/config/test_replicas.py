"""Replicas of several ranks in a job file."""

import re
from pathlib import Path

import pytest

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError
from mpidata.run.plan import Plan

TEXT = """\
trainers: {ranks: 6, ranks_per_replica: 3, program: [python, train.py]}
solvers: {program: [./heat2d], groups: 2, ranks_per_group: 2}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


def load(folder: Path, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(TEXT)
    return load_job(folder / "job.yaml", overrides)


def problem(folder: Path, *overrides: str) -> str:
    with pytest.raises(JobFileError) as caught:
        load(folder, *overrides)
    (line,) = caught.value.problems
    return re.sub(r" \(.*line \d+\)$| \(--set .*\)$", "", line).removeprefix("job.yaml: ")


def test_the_first_ranks_of_replicas_are_the_trainers_of_the_plan(folder: Path) -> None:
    job = load(folder)
    assert job.layout == "1 scheduler, 6 trainers (replicas of 3) and 2 groups of 2"
    plan = Plan.parse(Plan.of(job, folder / "run").text())
    assert (plan.world, plan.trainers, plan.mates, plan.ranks_per_replica) == (11, 2, 4, 3)
    assert plan.world == job.world_size and plan.programs["mate"] == plan.programs["trainer"]
    roles = [("trainer", 0, 0), ("trainer", 1, 0), ("mate", 0, 1), ("mate", 0, 2), ("mate", 1, 1), ("mate", 1, 2)]
    assert [plan.role_of(rank) for rank in plan.scripts] == roles
    assert [plan.replica_ranks(trainer) for trainer in (0, 1)] == [(1, 3, 4), (2, 5, 6)]
    assert plan.role_of(7) == ("solver", 0, 0) and plan.rank_of(1, 1) == 10
    assert plan.name_of(6) == "Mate 2 of trainer 1 (rank 6)" and plan.name_of(2) == "Trainer 1 (rank 2)"


def test_plan_omits_replicas_of_one_rank(folder: Path) -> None:
    plan = Plan.of(load(folder, "trainers.ranks_per_replica=1"), folder / "run")
    assert (plan.trainers, plan.mates) == (6, 0)
    assert not [line for line in plan.text().splitlines() if line.startswith(("ranks_per_replica", "program mate"))]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["trainers.ranks=7"],
            "'trainers.ranks_per_replica' is 3, but 'trainers.ranks' is 7: the ranks do not form whole replicas. "
            "Make 'trainers.ranks' a multiple of it.",
        ),
        (
            ["trainers.elastic=true"],
            "'trainers.ranks_per_replica' is 3, but with 'trainers.elastic' each rank must hold the whole model. "
            "Remove one of them.",
        ),
        (
            ["servers={ranks: 1}"],
            "'trainers.ranks_per_replica' is 3, but 'servers' keep whole models. Remove one of them.",
        ),
    ],
)
def test_settings_that_conflict_with_replicas_are_refused(folder: Path, overrides: list[str], said: str) -> None:
    assert problem(folder, *overrides) == said
