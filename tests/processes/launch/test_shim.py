"""mpidata-rank, started by hand: which program it runs as which rank, and what it refuses; no MPI."""

import os
import re
from pathlib import Path

import pytest
from launch_job import JOIN_AND_LEAVE, SOURCES, make_plan
from shim_run import run_rank

from mpidata.run.exits import ANOTHER_START, tail


def test_the_source_is_short_and_needs_no_mpi() -> None:
    for source in SOURCES:
        text = source.read_text()
        assert "mpi.h" not in text and len(text.splitlines()) < 400


@pytest.mark.parametrize(
    ("rank", "role", "log"),
    [
        (0, "scheduler", "rank-0000-scheduler.log"),
        (1, "trainer", "rank-0001-trainer-0.log"),
        (2, "trainer", "rank-0002-trainer-1.log"),
        (3, "solver", "rank-0003-solver-0-0.log"),
        (4, "solver", "rank-0004-solver-0-1.log"),
        (5, "solver", "rank-0005-solver-1-0.log"),
        (6, "solver", "rank-0006-solver-1-1.log"),
    ],
)
def test_each_rank_runs_the_program_of_its_role(shim: Path, tmp_path: Path, rank: int, role: str, log: str) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$0 $MPIDATA_RUN $(pwd)"; echo error >&2; test ! -t 0 && ! read line'
    plan = make_plan(tmp_path, {name: ["sh", "-c", say, name] for name in ("scheduler", "trainer", "solver")})
    done = run_rank(shim, plan.run, rank)
    assert (done.returncode, done.stderr) == (0, "")
    assert (plan.run / "logs" / log).read_text() == f"{role} {plan.run} {tmp_path}\nerror\n"
    assert os.listdir(plan.run / "logs") == [log] and not os.listdir(plan.run / "exits")


def test_log_separates_the_starts_of_a_run(shim: Path, tmp_path: Path) -> None:
    say = f"{JOIN_AND_LEAVE}; echo $WORD"
    for word in ("first", "second"):
        plan = make_plan(tmp_path, {"scheduler": ["sh", "-c", say]}, {"WORD": word})
        assert run_rank(shim, plan.run, 0).returncode == 0
    log = plan.run / "logs" / "rank-0000-scheduler.log"
    assert log.read_text() == f"first\n{ANOTHER_START}\nsecond\n" and tail(log, 9) == ["second"]


def test_environment_of_a_trainer(shim: Path, tmp_path: Path) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$RANK $WORLD_SIZE $LOCAL_RANK $PYTHONUNBUFFERED $OMP_NUM_THREADS $EQUAL"'
    plan = make_plan(tmp_path, {"trainer": ["sh", "-c", say]}, {"OMP_NUM_THREADS": "3", "EQUAL": "a = b"})
    assert run_rank(shim, plan.run, 2, OMPI_COMM_WORLD_LOCAL_RANK="2").returncode == 0
    assert run_rank(shim, plan.run, 2, OMPI_COMM_WORLD_LOCAL_RANK="0").returncode == 0  # first rank of a second host
    assert run_rank(shim, plan.run, 2).returncode == 0
    log = (plan.run / "logs" / "rank-0002-trainer-1.log").read_text()
    told = [line for line in log.splitlines() if line != ANOTHER_START]
    assert told == ["1 2 1 1 3 a = b", "1 2 0 1 3 a = b", "1 2 1 1 3 a = b"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "-"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "7"}, "2 0"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "-"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1"}, "2 0"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "7"}, "-"),
    ],
)
def test_trainers_get_the_environment_of_torchrun(
    shim: Path, tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    say = f'{JOIN_AND_LEAVE}; echo "$TORCHELASTIC_RUN_ID" "${{LOCAL_WORLD_SIZE--}}" $GROUP_RANK'
    plan = make_plan(tmp_path, dict.fromkeys(("trainer", "solver"), ["sh", "-c", say]))
    assert run_rank(shim, plan.run, 2, **variables).returncode == 0
    assert run_rank(shim, plan.run, 3, **variables).returncode == 0
    logs = [(plan.run / "logs" / name).read_text() for name in ("rank-0002-trainer-1.log", "rank-0003-solver-0-0.log")]
    assert logs == [f"{plan.run} {expected}\n", " -\n"]


@pytest.mark.parametrize(
    "variables",
    [
        {"PMIX_RANK": "3"},
        {"PMI_RANK": "3", "PMI_SIZE": "7"},
        {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "7"},
        {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "7", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"},
        {"PMIX_RANK": "3", "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "7"},
    ],
)
def test_rank_is_read_from_the_environment_of_each_launcher(
    shim: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    plan = make_plan(tmp_path, {})
    assert run_rank(shim, plan.run, None, **variables).returncode == 0
    assert os.listdir(plan.run / "logs") == ["rank-0003-solver-0-0.log"]


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "5"},
        {"PMI_RANK": "0", "PMI_SIZE": "5"},
        {"SLURM_PROCID": "0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5"},
        {"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.1.0", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "5"},
    ],
)
def test_a_wrong_number_of_ranks_is_refused(shim: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    plan = make_plan(tmp_path, {})
    done = run_rank(shim, plan.run, None, **variables)
    assert done.returncode == 1
    assert re.fullmatch(r"mpidata: The launcher started 5 ranks, but the job has 7\. .* with -n 7, .*\n", done.stderr)
    assert not os.listdir(plan.run / "logs")


def test_only_rank_0_reports_a_wrong_number_of_ranks(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    done = run_rank(shim, plan.run, 1, size=5)
    assert (done.returncode, done.stderr) == (1, "")


def test_unwritable_log_is_reported(shim: Path, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    (plan.run / "logs" / "rank-0003-solver-0-0.log").mkdir()
    done = run_rank(shim, plan.run, 3)
    assert done.returncode == 1 and "rank-0003-solver-0-0.log: Is a directory." in done.stderr


@pytest.mark.parametrize("variables", [{}, {"SLURM_PROCID": "0"}, {"PMI_RANK": "two"}, {"PMI_RANK": "-1"}])
def test_start_without_a_rank_is_refused(shim: Path, tmp_path: Path, variables: dict[str, str]) -> None:
    done = run_rank(shim, make_plan(tmp_path, {}).run, None, **variables)
    assert done.returncode == 1 and "has no rank" in done.stderr and "mpirun" in done.stderr


def test_missing_or_invalid_plan_is_refused(shim: Path, tmp_path: Path) -> None:
    done = run_rank(shim, tmp_path, 0)
    assert done.returncode == 1 and f"Cannot read {tmp_path}/private/plan: No such file" in done.stderr
    plan = tmp_path / "private" / "plan"
    plan.parent.mkdir()
    plan.write_text("mpidata-plan 1\nworld 7\ntrainers 2\ngroups 2\nranks_per_group 1\nfolder /\n")
    assert "no complete layout" in run_rank(shim, tmp_path, 0).stderr
    plan.write_text("mpidata-plan 2\n")
    assert "begins with 'mpidata-plan 2'" in run_rank(shim, tmp_path, 0).stderr
