"""Data that carried programs put arrives as data of ranks does."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from carried_job import check, write_job
from jobs import BIN, DRAIN, PROGRAMS, JobFolder, config, mpicc, python

Build = Callable[..., Path]
PYTHON_SOLVER = "solvers/python/without_mpi.py"


# Samples of 80 KB are sent from the memory shared with the program, those of 5 KB share messages.
@pytest.mark.parametrize("depth", [900, pytest.param(9, marks=pytest.mark.full)])
def test_every_element_of_a_program_without_mpi_arrives(folder: JobFolder, carried: Build, depth: int) -> None:
    program = carried("pattern")
    assert "libmpi.so" not in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    write_job(folder, program, "copy", str(depth), depth=depth)
    check(folder, folder.run())


def test_single_c99_source_file_needs_no_library(folder: JobFolder) -> None:
    told = subprocess.run([BIN / "mpidata", "config", "--csource"], capture_output=True, text=True, check=True)
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    source = next(word for word in shlex.split(told.stdout) if word.endswith(".c"))
    subprocess.run(["cc", *warnings, "-c", source, "-o", folder.path / "carried.o"], check=True)
    program = folder.path / "pattern"
    command = ["cc", "-static", "-DCARRIED", PROGRAMS / "solvers/pattern.c", "-o", program, *shlex.split(told.stdout)]
    subprocess.run(command, check=True)
    write_job(folder, program, "copy", "9", depth=9)
    check(folder, folder.run())


OWN_MPIS = {"the job's": mpicc, "MPICH": lambda: "mpicc.mpich", "Open MPI 4": lambda: "mpicc.openmpi"}


@pytest.mark.full
@pytest.mark.parametrize("mpi", OWN_MPIS)
def test_program_of_any_mpi_keeps_its_own_comm_world(
    folder: JobFolder, carried: Build, require: Callable[[str], str], mpi: str
) -> None:
    program = carried("pattern", require(OWN_MPIS[mpi]()))
    write_job(folder, program, "copy", carried={"ranks": 3})
    check(folder, folder.run())


@pytest.mark.parametrize(("ranks", "carriers", "depth"), [(3, 2, 900), (4, 2, 9), (4, 3, 900), (2, 2, 9)])
def test_ranks_of_a_program_are_distributed_over_carriers(
    folder: JobFolder, carried: Build, require: Callable[[str], str], ranks: int, carriers: int, depth: int
) -> None:
    program = carried("pattern", require("mpicc.mpich"))
    keys = {"carried": {"ranks": ranks}, "ranks_per_group": carriers}
    write_job(folder, program, "copy", str(depth), depth=depth, **keys)
    check(folder, folder.run())


@pytest.mark.full
def test_custom_launcher_starts_a_program_for_each_simulation(
    folder: JobFolder, carried: Build, require: Callable[[str], str]
) -> None:
    program = carried("pattern", require("mpicc.mpich"))
    launcher = [require("mpirun.mpich"), "-n", "{ranks}", "-hosts", "{hosts}"]
    each = {"lifetime": "simulation", "carried": {"ranks": 2, "launcher": launcher}}
    write_job(folder, program, "copy", "900", "{simulation}", **each)
    check(folder, folder.run())


def test_python_program_needs_no_mpi_and_is_restarted_if_it_raises(folder: JobFolder) -> None:
    folder.job(trainers=DRAIN, solvers={"carried": {}, "program": python(PYTHON_SOLVER, "raises")})
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["samples"]["received"] == 12
    assert "ValueError: as asked" in result.log("solver")


def test_program_gets_the_environment_of_mpidata_run(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_made_up", "mine")
    folder.job(trainers=DRAIN, solvers={"carried": {}, "program": python(PYTHON_SOLVER, "environment")})
    result = folder.run()
    assert result.status == 0, result.logs()
    found = json.loads((folder.path / "env.json").read_text())
    assert found["OMPI_MCA_made_up"] == "mine" and found["MPIDATA_GROUP"] == "0"
    ours = ("OMPI_COMM_", "PMIX_RANK", "PMIX_SERVER", "PRTE_LAUNCHED", "MPIDATA_RUN", "MPIDATA_PULSE")
    assert not [name for name in found if name.startswith(ours)]


@pytest.mark.full
def test_wrong_shape_fails_the_job_and_names_the_solver_rank(folder: JobFolder) -> None:
    folder.job(trainers=DRAIN, solvers={"carried": {}, "program": python(PYTHON_SOLVER, "transposed")})
    result = folder.run()
    assert result.status == 1
    said = " ".join(result.output.split())
    assert "Field 'u' has shape (4, 6), but (6, 4) was put. Solver rank 2 (group 0, its rank 0), simulation" in said


@pytest.mark.full
@pytest.mark.parametrize(
    ("keys", "job", "sentence"),
    [
        ({"ranks": 2, "launcher": ["no-such-mpirun"]}, {}, "begins with 'no-such-mpirun', which is not on PATH."),
        (
            {},
            {"fields": {"u": {"shape": [40000, 40000]}}},
            "share memory for 1025 samples, 6560.0 GB, but this host has",
        ),
        (
            {},
            {"fields": {"u": {"shape": [4]}, "map": {"shape": [40000, 40000], "per": "simulation"}}},
            "share memory for 1025 samples, 6560.0 GB, but this host has",
        ),
        (
            {},
            {
                "fields": {"u": {"shape": [4]}, "xy": {"shape": ["nodes", 40000], "per": "simulation"}},
                "lengths": {"nodes": {"at_most": 40000}},
            },
            "share memory for 1025 samples, 6560.0 GB, but this host has",
        ),
        ({"ranks": 2, "launcher": ["env"]}, {}, "has not called mpidata_attach on all its ranks (1 of 2 have)"),
    ],
)
def test_unusable_launchers_and_oversized_fields_are_reported(
    folder: JobFolder, carried: Build, keys: dict[str, object], job: dict[str, object], sentence: str
) -> None:
    more = {"in_flight": 1024, "start_timeout_s": 3, "retries": 0, "tolerate": 0}
    write_job(folder, carried("pattern"), carried=keys, **more)
    folder.change_job(buffer={"policy": "fifo", "capacity": 1}, **job)
    result = folder.run()
    assert result.status == (2 if result.run is None else 1)
    said = result.output if result.run is None else result.logs()
    assert sentence in " ".join(said.split()), said


@pytest.fixture
def control_group() -> Iterator[Path]:
    """Yield a control group whose processes may take a gigabyte of memory."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    old = next((path for _, controllers, path in lines if "memory" in controllers.split(",")), None)
    new = next((path for number, _, path in lines if number == "0"), "")
    root = Path("/sys/fs/cgroup") / ("memory" + old if old else new[1:])
    group = root / f"mpidata-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(2**30))
    except OSError as error:
        pytest.skip(f"no control group for memory can be made here: {error}")
    yield group
    group.rmdir()


@pytest.mark.full
def test_memory_check_respects_the_control_group_limit(folder: JobFolder, carried: Build, control_group: Path) -> None:
    write_job(folder, carried("pattern"), in_flight=40)
    fields = {"u": {"shape": [3000, 3000]}}
    folder.change_job(trainers={"ranks": 1, **DRAIN}, fields=fields, buffer={"policy": "fifo", "capacity": 1})
    enter = f"echo $$ > {control_group}/cgroup.procs && exec {shlex.join(map(str, folder.command()))}"
    result = folder.run(command=["sh", "-c", enter])
    assert result.status == 1
    said = " ".join(result.logs().split())
    assert "41 samples, 1.5 GB, but the limit of the job's control group leaves" in said, result.logs()


@pytest.mark.full
def test_a_fortran_program_needs_no_mpi(folder: JobFolder, require: Callable[[str], str]) -> None:
    command = [require("gfortran"), PROGRAMS / "solvers/fortran/without_mpi.f90", "-o", "solver", *config("--fcarried")]
    subprocess.run(command, cwd=folder.path, check=True)
    folder.job(trainers=DRAIN, solvers={"carried": {}, "program": ["./solver"]})
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["received"] == 12


@pytest.mark.full
def test_cmake_finds_the_carried_component_without_mpi(tmp_path: Path, require: Callable[[str], str]) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(solver LANGUAGES C)\n"
        "find_package(mpidata 0.2 REQUIRED COMPONENTS carried)\n"
        f"add_executable(solver {PROGRAMS / 'solvers/pattern.c'})\ntarget_compile_definitions(solver PRIVATE CARRIED)\n"
        "target_link_libraries(solver PRIVATE mpidata::carried)\n"
    )
    prefix = subprocess.run([BIN / "mpidata", "config", "--prefix"], capture_output=True, text=True, check=True)
    cmake = require("cmake")
    without_mpi = ["-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON", f"-DCMAKE_PREFIX_PATH={prefix.stdout.strip()}"]
    subprocess.run([cmake, "-S", ".", "-B", "build", *without_mpi], cwd=tmp_path, check=True)
    subprocess.run([cmake, "--build", "build"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "build" / "solver", "2"], capture_output=True, text=True, check=True)
    assert "started outside a job" in done.stderr
