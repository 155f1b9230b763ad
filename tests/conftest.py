"""Fixtures of all tests: required programs, and rules that a run of the suite must keep."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cluster import Cluster

os.environ.setdefault("MPIDATA_REPORT", "false")  # skips the reports of hundreds of jobs
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's own threads spin at start: half of its import time
os.environ.setdefault("OMPI_MCA_btl", "^ofi")  # ofi sleeps 1 s in MPI_Init if it finds no network
gc.set_threshold(20_000, 50, 100)  # garbage collection took a third of the time of test collection
REQUIRE_ALL = os.environ.get("MPIDATA_REQUIRE_ALL", "") not in ("", "0")


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """Return the path of a program that a test requires: `path = require("gfortran")`.

    Searches the environment of this Python, then PATH. If the program is missing, the test is skipped, or fails if
    MPIDATA_REQUIRE_ALL is set.
    """

    def find(program: str) -> str:
        here = os.path.join(sys.prefix, "bin")
        path = shutil.which(program, path=os.pathsep.join([here, os.environ.get("PATH", os.defpath)]))
        if path is None:
            pytest.skip(f"{program} is not installed")
        return path

    return find


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Path:
    """mpidata-rank, built without MPI."""
    from launch_job import build_shim

    return build_shim(tmp_path_factory.mktemp("shim"), require("cc"))


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile programs/solvers/<name>.c as a program that is not a rank of the job; return the executable's path.

    `compiler` is the mpicc of the program's own MPI, or None.
    """
    import subprocess

    from jobs import PROGRAMS, config

    made: dict[tuple[str, str], Path] = {}
    target = tmp_path_factory.mktemp("carried")

    def build(name: str, compiler: str | None = None) -> Path:
        if (name, str(compiler)) not in made:
            warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-g", "-DCARRIED"]
            warnings += ["-DWITH_MPI"] if compiler else []
            source, executable = PROGRAMS / "solvers" / f"{name}.c", target / f"{name}-{len(made)}"
            command = [compiler or "cc", *warnings, source, "-o", executable, *config("--carried"), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            made[name, str(compiler)] = executable
        return made[name, str(compiler)]

    return build


@pytest.fixture(scope="session")
def built_heat2d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the built solver of the heat example."""
    from heat2d_job import build_heat2d

    folder = tmp_path_factory.mktemp("heat2d")
    build_heat2d(folder)
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Cluster]":
    """A Slurm cluster on this machine, only for the tests."""
    from cluster import Cluster, missing

    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    with Cluster(tmp_path_factory.mktemp("slurm")) as started:
        yield started


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}. MPIDATA_REQUIRE_ALL is set, so no test may be left out."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    # An mpirun fails silently if its parent process has loaded MPI.
    if "mpi4py.MPI" in sys.modules:
        report.outcome = "failed"
        report.longrepr = "This process has imported mpi4py.MPI. Run MPI programs as processes of their own."
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report
