"""All ranks of a group read one whole version of what is published, however they run and whoever dies."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs import MPIFH, PROGRAMS, JobFolder, Result, config, mpicc, python

UNTIL = 3


def write(folder: JobFolder, *arguments: str, solvers: dict[str, Any] | None = None, **more: Any) -> None:
    """Write a job of published/solver.py, or another program; `more`: keys, and options of published/trainer.py."""
    keys = {name: more.pop(name) for name in ("trainers", "checkpoint", "parameters", "buffer") if name in more}
    elements = more.setdefault("elements", 100)
    program = python("published/solver.py", more.pop("until", UNTIL), elements, *arguments)
    trainers = {"program": python("published/trainer.py", json.dumps(more))} | keys.pop("trainers", {})
    folder.job(trainers=trainers, solvers={"program": program, **(solvers or {})}, **keys)


def check(result: Result, until: int = UNTIL) -> None:
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 4, result.logs()
    used = [line for line in result.marked() if "versions were used" in line]
    assert used and int(used[0].split()[7]) >= until, result.logs()


def test_all_ranks_of_a_group_read_the_same_version(folder: JobFolder) -> None:
    write(folder, solvers={"groups": 2, "ranks_per_group": 2})
    check(folder.run())


@pytest.mark.full
@pytest.mark.parametrize("lifetime", ["pool", "simulation"])
def test_ranks_of_a_spawned_group_read_the_same_version(folder: JobFolder, lifetime: str) -> None:
    write(
        folder,
        solvers={"groups": 2, "ranks_per_group": 2, "start": "spawn", "lifetime": lifetime},
        trainers={"ranks": 2},
    )
    check(folder.run())


@pytest.mark.full
def test_versions_are_complete_while_new_ones_arrive_quickly(folder: JobFolder) -> None:
    more = {"every": 1, "publishes": 50, "elements": 30000, "until": 3000}
    write(folder, solvers={"groups": 3, "ranks_per_group": 2}, **more)
    check(folder.run(timeout=120), 3000)


@pytest.mark.full
def test_a_hundred_megabytes_can_be_published(folder: JobFolder) -> None:
    write(folder, solvers={"groups": 2, "ranks_per_group": 2}, elements=12_500_000)
    check(folder.run(timeout=120))


@pytest.mark.full
@pytest.mark.parametrize("solvers", [{"carried": {}}, {"carried": {}, "lifetime": "simulation"}])
def test_carried_python_program_reads_published_versions(folder: JobFolder, solvers: dict[str, Any]) -> None:
    write(folder, solvers={"groups": 2, **solvers})
    check(folder.run())


@pytest.mark.full
def test_c_solver_reads_published_versions(folder: JobFolder, compiled: Callable[[str], Path]) -> None:
    write(folder, solvers={"groups": 2, "ranks_per_group": 2, "program": [str(compiled("published"))]})
    check(folder.run())


@pytest.mark.full
@pytest.mark.parametrize("carriers", [1, 2])
def test_carried_c_program_reads_published_versions(
    folder: JobFolder, require: Callable[[str], str], carriers: int
) -> None:
    source, program = PROGRAMS / "solvers/published.c", folder.path / "published"
    command = [
        require("mpicc.mpich"),
        "-DCARRIED",
        "-DWITH_MPI",
        source,
        "-o",
        program,
        *config("--cflags", "--carried"),
    ]
    subprocess.run(command, check=True)
    launcher = [require("mpirun.mpich"), "-n", "3"]
    carried = {"carried": {"ranks": 3, "launcher": launcher}, "ranks_per_group": carriers}
    write(folder, solvers={"program": [str(program)], **carried})
    check(folder.run())


@pytest.mark.full
def test_fortran_solver_reads_published_versions(folder: JobFolder, require: Callable[[str], str]) -> None:
    require("gfortran")
    source, program = PROGRAMS / "solvers/fortran/published.f90", folder.path / "published"
    bridge = folder.path / "mpifh.o"
    command = ["gfortran", f"-I{MPIFH}", *config("--fflags"), source, bridge, "-o", program, *config("--flibs")]
    for words in ([mpicc(), "-c", MPIFH / "mpifh.c", "-o", bridge], command):
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    write(folder, solvers={"ranks_per_group": 2, "program": [str(program)]})
    check(folder.run())


@pytest.mark.full
@pytest.mark.parametrize("trainers", [1, 2, 3])
def test_resume_starts_with_the_newest_version(folder: JobFolder, trainers: int) -> None:
    """The checkpoint has the newest version, for any trainers; a group reads it before anything new is published."""
    more = {"kept": True, "every": 3, "until": 12, "pause_s": 0.05, "dies": [0, 20]}
    write(folder, trainers={"ranks": 2}, checkpoint={"every_s": 0.3}, **more)
    first = folder.run()
    assert first.status == 1 and first.run is not None, first.logs()
    second = folder.resume(first.run, "--set", f"trainers.ranks={trainers}")
    assert second.status == 0, second.logs()
    begins = [int(line.split()[-1]) for line in second.marked() if line.startswith("begins with")]
    again = int(trainers > 2)  # the logs of both starts lie there, in the order of ranks
    firsts = [int(line.split()[1]) for line in second.marked("solver", again) if line.startswith("first")]
    assert firsts[-1] >= begins[-1] > 0, second.logs()


@pytest.mark.full
def test_job_completes_if_a_rank_dies_between_two_versions(folder: JobFolder) -> None:
    write(folder, "dies", solvers={"groups": 2, "ranks_per_group": 2, "spares": 1})
    result = folder.run()
    check(result)
    assert (folder.path / "died").exists()


@pytest.mark.full
@pytest.mark.parametrize("batch", [2, 9])
def test_another_trainer_publishes_after_the_first_dies(folder: JobFolder, batch: int) -> None:
    trainers = {"ranks": 2, "elastic": True, "program": None}
    more = {"dies": [0, batch], "checkpoint": False, "until": 6}
    options = json.dumps({"elements": 100, "every": 4, **more})
    write(folder, trainers=trainers | {"program": python("published/trainer.py", options)}, until=6)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["lost_trainers"] == [0], result.logs()


@pytest.mark.full
def test_rank_stopped_while_it_reads_a_version_is_ended(folder: JobFolder) -> None:
    solvers = {"groups": 1, "ranks_per_group": 2, "spares": 1, "timeout_s": 2, "start_timeout_s": 10}
    write(folder, "stops", solvers=solvers, elements=12_500_000)
    result = folder.run(timeout=100)
    check(result)
    assert result.summary["lost_groups"] == 1 and (folder.path / "died").exists()


def test_reading_an_unpublished_name_fails_the_job(folder: JobFolder) -> None:
    folder.write(
        solve="import ctypes, mpidata\n"
        "from mpidata.solver import joined, refresh\n"
        "for _ in mpidata.solver.simulations():\n"
        "    while not refresh():\n"
        "        pass\n"
        "    found = ctypes.c_int(), ctypes.c_int(), (ctypes.c_int64 * 6)(), ctypes.c_void_p()\n"
        "    joined().library.mpidata_published(b'wait', *found[:2], found[2], found[3])\n"
    )
    write(folder, solvers={"program": ["python", "solve.py"]})
    result = folder.run()
    assert result.status == 1
    said = " ".join(result.output.split())
    assert "'wait' has not been published, but 'weight', 'bias', 'step' and 'none'" in said, result.logs()


@pytest.mark.full
def test_a_function_that_runs_on_one_rank_of_several_cannot_refresh(folder: JobFolder) -> None:
    folder.write(
        reads="import mpidata\ndef simulate(alpha):\n    mpidata.solver.refresh()\n    yield {'u': [[alpha] * 6] * 4}\n"
    )
    folder.job(
        trainers={"program": python("trainers/drain.py")}, solvers={"function": "reads:simulate", "ranks_per_group": 2}
    )
    result = folder.run()
    assert result.status == 1
    said = " ".join(result.output.split())
    assert "refresh was called by a function that runs on one rank of its group" in said, result.logs()
