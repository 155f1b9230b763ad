"""What Plan.text writes, and changes to it, as all readers read it: Plan.parse, the library and mpidata-rank."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from launch_job import ROOT, clean_environment, make_plan

from mpidata.errors import MpidataError
from mpidata.run.plan import Plan

SOURCE = ROOT / "c_api" / "src"

# The change, and the errors of Python and C; "": no error. C ignores what only the scheduler needs, and Python
# what makes no sense, because it wrote the text itself.
CASES = [
    ("seed 0", "seed 9223372036854775807", "", ""),
    (
        "mpidata-plan 1",
        "mpidata-plan 2",
        "begins with 'mpidata-plan 2', not 'mpidata-plan 1'",
        "begins with 'mpidata-plan 2'",
    ),
    ("seed 0", "sede 0", "Line 4 of the plan is 'sede 0': unknown key", ""),
    ("seed 0", "seed x", "Line 4 of the plan is 'seed x': invalid literal", "cannot be read: 'seed x'"),
    ("seed 0", "seed", "Line 4 of the plan is 'seed': invalid literal", "cannot be read: 'seed'"),
    ("seed 0\n", "", "The plan lacks seed. Start the job again", ""),
    ("seed 0", "seed 0\nseed 1", "Line 5 of the plan is 'seed 1': duplicate key", ""),
    ("folder /", "folder /\nfolder /", "duplicate key", "cannot be read: 'folder /"),
    ("capacity 8\n", "", "lacks capacity", "lacks one of 'run', 'folder', 'in_flight', 'capacity'"),
    ("in_flight 4", "in_flight 0", "", "cannot be read: 'in_flight 0'"),
    ("trainers 2", "trainers 0", "", "cannot be read: 'trainers 0'"),
    ("trainers 2\n", "", "lacks trainers", "no complete layout"),
    ("world 7", "world 8", "", "no complete layout"),
    ("trainers 2", "trainers 2\nranks_per_replica 2", "The plan lacks program mate", "no complete layout"),
    (
        "trainers 2",
        "trainers 2\nranks_per_replica 0",
        "The plan lacks program mate",
        "cannot be read: 'ranks_per_replica 0'",
    ),
    ("start split", "start apart", "", "cannot be read: 'start apart'"),
    ("lifetime pool", "lifetime short", "", "cannot be read: 'lifetime short'"),
    ("fault_tolerance none", "fault_tolerance some", "", "cannot be read: 'fault_tolerance some'"),
    ("policy fifo", "policy lifo", "", "cannot be read: 'policy lifo'"),
    ("policy fifo", "policy reservoir\nrepeats 1.5", "", ""),
    ("policy fifo", "policy reservoir\nrepeats 0.5", "", "'repeats' less than 1, or without a reservoir"),
    ("policy fifo", "policy fifo\nrepeats 2.0", "", "'repeats' less than 1, or without a reservoir"),
    ("policy fifo", "policy reservoir\nrepeats twice", "could not convert", "cannot be read: 'repeats twice'"),
    ("\ntimeout_s 60.0", "\ntimeout_s -1", "", "cannot be read: 'timeout_s -1'"),
    ("join_timeout_s 600.0", "join_timeout_s inf", "", "cannot be read: 'join_timeout_s inf'"),
    ("field u float64 1 2", "field u float64 2 2", "1 extents, not 2", "cannot be read: 'field u float64 2 2'"),
    ("field u float64 1 2", "field u float128 1 2", "", "cannot be read: 'field u float128 1 2'"),
    ("field u float64 1 2", "field u", "Line 31", "cannot be read: 'field u'"),
    ("program solver\n", "", "The plan lacks program solver", ""),
    ("program solver", "program spare", "unknown role", "cannot be read: 'program spare'"),
    ("program scheduler\n", "", "Line 32 of the plan is 'argument sh': unknown key", "cannot be read: 'argument sh'"),
    ("environment A=b = c", "environment A", "unknown key", "cannot be read: 'environment A'"),
]


LOADERS = {"loaders": 2, "loader_spares": 1}
# The same for a plan with loaders.
WITH_LOADERS = [
    ("world 10", "world 9", "", "no complete layout"),
    ("loaders 2", "loaders -1", "", "cannot be read: 'loaders -1'"),
    ("loader_start split", "loader_start apart", "", "cannot be read: 'loader_start apart'"),
    ("loader_timeout_s 60.0\n", "", "", "lacks 'loader_timeout_s' or 'loader_start_timeout_s'"),
    ("loader_spares 1", "loader_spares one", "Line 31", "cannot be read: 'loader_spares one'"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """Build the program that prints the library's error about a plan: tests/c/test_plan.c."""
    program = tmp_path_factory.mktemp("library") / "test_plan"
    names = ("wire/plan.c", "plan_text/plan_reading.c", "plan_text/plan_fields.c", "base/status.c", "program/text.c")
    names += ("containers/array.c", "containers/text_list.c")
    sources = [ROOT / "tests" / "c" / "test_plan.c", *(SOURCE / name for name in names)]
    include = [f"-I{folder}" for folder in (ROOT / "c_api" / "include", SOURCE, ROOT / "tests" / "c")]
    subprocess.run([require("mpicc"), *include, *sources, "-o", program], check=True)
    return program


def read_by_library(program: Path, text: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "text").write_text(text)
    return subprocess.run([program, folder / "text"], capture_output=True, text=True)


def read_by_rank(shim: Path, text: str, run: Path) -> "subprocess.CompletedProcess[str]":
    (run / "private" / "plan").write_text(text)
    world = next((line.split()[1] for line in text.splitlines() if line.startswith("world ")), "7")
    variables = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": world}
    command = [shim, run]
    return subprocess.run(command, env=clean_environment(**variables), capture_output=True, text=True, timeout=20)


@pytest.mark.parametrize(("old", "new", "in_python", "in_c"), CASES + WITH_LOADERS)
def test_each_reader_reports_its_errors_in_a_changed_plan(
    old: str, new: str, in_python: str, in_c: str, shim: Path, library: Path, tmp_path: Path
) -> None:
    more = {"world": 10, **LOADERS} if (old, new, in_python, in_c) in WITH_LOADERS else {}
    plan = make_plan(tmp_path, {}, {"A": "b = c"}, **more)
    assert old in plan.text()
    text = plan.text().replace(old, new, 1)
    if in_python:
        with pytest.raises(MpidataError, match=re.escape(in_python)):
            Plan.parse(text)
    else:
        Plan.parse(text)
    for done in (read_by_library(library, text, tmp_path), read_by_rank(shim, text, plan.run)):
        assert (done.returncode == 0) == (not in_c), done.stdout + done.stderr
        assert in_c in done.stdout + done.stderr


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"world": 11, "spares": 2},
        {"world": 3, "start": "spawn"},
        {"world": 10, **LOADERS},
        {"world": 6, "start": "spawn", **LOADERS},
        {"world": 7, "loader_start": "spawn", **LOADERS},
        {"world": 6, "groups": 0, **LOADERS},
        {"world": 9, "ranks_per_replica": 2},
        {"world": 16, "ranks_per_replica": 3, "servers": 2, **LOADERS},
        {"world": 10, "groups": 0, "ranks_per_replica": 3, **LOADERS},
    ],
)
def test_library_and_python_agree_on_the_role_of_each_rank(
    changes: dict[str, object], library: Path, tmp_path: Path
) -> None:
    plan = make_plan(tmp_path, {}, **changes)
    places = [tuple(line.split()) for line in read_by_library(library, plan.text(), tmp_path).stdout.splitlines()]
    assert places == [tuple(map(str, plan.role_of(rank))) for rank in range(plan.world)]
