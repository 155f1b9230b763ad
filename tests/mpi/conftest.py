"""Fixtures of the tests that run jobs."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import PROGRAMS, JobFolder, config, environment, mpicc


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    job_folder = JobFolder(tmp_path)
    yield job_folder
    job_folder.end()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile programs/solvers/<name>.c as a user compiles a solver; returns the executable's path."""
    made: dict[str, Path] = {}
    target = tmp_path_factory.mktemp("programs")

    def build(name: str) -> Path:
        if name not in made:
            warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-g"]
            source, executable = PROGRAMS / "solvers" / f"{name}.c", target / name
            command = [mpicc(), *warnings, source, "-o", executable, *config("--cflags", "--libs"), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, env=environment())
            assert done.returncode == 0, done.stderr
            made[name] = executable
        return made[name]

    return build


@pytest.fixture
def standin(require: Callable[[str], str], tmp_path: Path) -> Path:
    """Build the stand-in for CUDA's driver, which is found by its name."""
    library, sources = tmp_path / "libcuda.so.1", PROGRAMS.parents[1] / "devices"
    options = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([require("cc"), *options, sources / "standin.c", "-o", library], check=True)
    return library
