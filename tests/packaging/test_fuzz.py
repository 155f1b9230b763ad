"""Plans, pieces of samples, orders and tasks that nobody meant, under the sanitizers (tests/c/fuzz.c)."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = ["-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra"]
INCLUDE = [f"-I{ROOT / folder}" for folder in ("c_api/include", "c_api/src", "tests/c")]


@pytest.fixture(scope="session")
def fuzz(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    mpicc = [require("mpicc"), *FLAGS, "-Wconversion", "-Werror", *INCLUDE]
    sources = sorted(path for path in (ROOT / "c_api" / "src").rglob("*.c") if path.parent.name != "carried")
    library = [
        *mpicc,
        '-DMPIDATA_BUILT_WITH="MPI"',
        "-shared",
        "-fPIC",
        *sources,
        "-o",
        folder / "libmpidata.so",
        "-lm",
    ]
    # The fuzzer's own MPI takes the place of the one that the library is linked to.
    program = [*mpicc, ROOT / "tests" / "c" / "fuzz.c", f"-L{folder}", "-lmpidata", f"-Wl,-rpath,{folder}"]
    for command in (library, [*program, "-o", folder / "fuzz"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
    return folder / "fuzz"


def run(fuzz: Path, folder: Path, count: int, seed: int) -> None:
    input_file = folder / "input"
    print(f"{fuzz.name} {input_file} {count} {seed}; one failing input again: {fuzz.name} {input_file}")
    command = [fuzz, input_file, str(count), str(seed)]
    # What a window has under way when it is closed is MPI's: it is no leak.
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-6000:]


def test_inputs_that_nobody_meant(fuzz: Path, tmp_path: Path) -> None:
    run(fuzz, tmp_path, 5000, 1)


@pytest.mark.full
def test_new_inputs_that_nobody_meant(fuzz: Path, tmp_path: Path) -> None:
    run(fuzz, tmp_path, 300_000, random.randrange(1 << 40))
