"""Fixtures of the tests that run jobs."""

import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import BIN, PROGRAMS, JobFolder, environment, mpicc


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    job_folder = JobFolder(tmp_path)
    yield job_folder
    job_folder.end()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile programs/<name>.c as a user compiles a solver; returns the executable's path."""
    made: dict[str, Path] = {}
    target = tmp_path_factory.mktemp("programs")

    def build(name: str) -> Path:
        if name not in made:
            flags = subprocess.run(
                [BIN / "mpidata", "config", "--cflags", "--libs"], capture_output=True, text=True, check=True
            ).stdout
            warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-g"]
            source, executable = PROGRAMS / f"{name}.c", target / name
            command = [mpicc(), *warnings, source, "-o", executable, *shlex.split(flags), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, env=environment())
            assert done.returncode == 0, done.stderr
            made[name] = executable
        return made[name]

    return build
