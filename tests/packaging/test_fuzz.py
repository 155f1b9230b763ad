"""Random plans, pieces of samples, orders and tasks pass under the sanitizers (tests/c/fuzz.c)."""

import random
import subprocess
from pathlib import Path

import pytest
from sanitized import LIBRARIES, compile_c, objects

SOURCES = Path(__file__).parents[1] / "c"
SANITIZER = "address,undefined"


@pytest.fixture(scope="session")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    compile_c(SANITIZER, "-shared", *objects(SANITIZER, tmp_path_factory), "-o", folder / "libmpidata.so", *LIBRARIES)
    # The fuzzer's own MPI replaces the one that the library is linked to.
    library = [f"-L{folder}", "-lmpidata", f"-Wl,-rpath,{folder}"]
    compile_c(SANITIZER, f"-I{SOURCES}", SOURCES / "fuzz.c", *library, "-o", folder / "fuzz")
    return folder / "fuzz"


def run(fuzz: Path, folder: Path, count: int, seed: int) -> None:
    input_file = folder / "input"
    print(f"{fuzz.name} {input_file} {count} {seed}; one failing input again: {fuzz.name} {input_file}")
    command = [fuzz, input_file, str(count), str(seed)]
    # Operations of a window that are pending when it is closed belong to MPI, and are not leaks.
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-6000:]


def test_random_inputs_pass_under_the_sanitizers(fuzz: Path, tmp_path: Path) -> None:
    run(fuzz, tmp_path, 5000, 1)


@pytest.mark.full
def test_new_random_inputs_pass_under_the_sanitizers(fuzz: Path, tmp_path: Path) -> None:
    run(fuzz, tmp_path, 300_000, random.randrange(1 << 40))
