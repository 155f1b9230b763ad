"""The three heat solvers agree with an analytic solution and with each other, on 1, 2 and 4 ranks.

The C and Fortran solvers are linked with a recorder of the calls (tests/fortran/recorder.c) instead of libmpidata.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from example_copy import copy_example

ROOT = Path(__file__).resolve().parents[2]
HEAT = ROOT / "examples" / "heat2d"
BIN = Path(sys.executable).parent
PARAMETERS = {"alpha": 0.0737, "initial": 300.0, "left": 110.0, "right": 222.2, "bottom": 480.0, "top": 333.3}
LANGUAGES = ["c", "fortran", "python"]

pytestmark = pytest.mark.skipif(not (BIN / "mpicc").exists(), reason="no mpicc beside this Python")

Samples = npt.NDArray[np.float64]


def mpirun(ranks: int, *command: str | Path, **environment: str) -> str:
    """Run a command on `ranks` ranks; return its output."""
    options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    done = subprocess.run(
        [BIN / "mpirun", *options, "-n", str(ranks), *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(language: str, folder: Path) -> list[str | Path]:
    """Return the command line of a language's solver."""
    if language == "fortran" and shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    solvers: dict[str, list[str | Path]] = {
        "c": [folder / "heat2d"],
        "fortran": [folder / "heat2d_f"],
        "python": [sys.executable, HEAT / "heat2d.py"],
    }
    return solvers[language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the C solver and, if there is a compiler, the Fortran solver with the Makefile in a copy of the example."""
    folder = tmp_path_factory.mktemp("heat2d")
    copy_example("heat2d", folder)
    recorder = folder / "recorder.o"
    include = f"-I{ROOT / 'c_api' / 'include'}"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    source = ROOT / "tests" / "fortran" / "recorder.c"
    subprocess.run(
        [BIN / "mpicc", *strict, "-DRECORDER_MPI", include, "-c", source, "-o", recorder], check=True, timeout=60
    )
    mpi = BIN.parent / "lib"
    variables = {
        "MPICC": shlex.quote(f"{BIN}/mpicc"),
        "CFLAGS": "-std=c11 -O2 -ffp-contract=off -Wall -Wextra -Wconversion -Werror",
        "FFLAGS": "-std=f2018 -O2 -ffp-contract=off -Wall -Wextra -Werror",
        "MPIDATA_CFLAGS": shlex.quote(include),
        "MPIDATA_LIBS": recorder,
        "MPIDATA_FFLAGS": shlex.quote(f"{ROOT}/fortran_api/mpidata.f90"),
        "MPIDATA_FLIBS": f"{recorder} -L'{mpi}' -Wl,-rpath,'{mpi}' -lmpi",
    }
    done = subprocess.run(
        ["make", "-C", folder, *(f"{name}={value}" for name, value in variables.items())],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return folder


def recorded(path: Path, ranks: int) -> Samples:
    """Assemble the blocks recorded by all ranks: (steps, 64, 64)."""
    samples: list[Samples] = []
    for rank in range(ranks):
        step = 0
        with path.with_name(f"{path.name}.{rank}").open("rb") as record:
            while words := record.readline().decode().split():
                if words[0] == "put_block":
                    assert words[1:4] == ["temperature", "2", "2"]
                    rows, columns, row, column, size = map(int, words[4:])
                    if step == len(samples):
                        samples.append(np.full((64, 64), np.nan))
                    place = samples[step][row : row + rows, column : column + columns]
                    assert np.isnan(place).all(), "blocks overlap"
                    place[:] = np.frombuffer(record.read(size)).reshape(rows, columns)
                elif words[0] == "step":
                    step += 1
                    assert float(words[1]) == step * 0.005
        assert step == 100
    return np.array(samples)


def samples(language: str, ranks: int, folder: Path) -> Samples:
    """Run one simulation; return its samples, (100, 64, 64)."""
    if language == "python":
        out = folder / f"python{ranks}.npy"
        driver = Path(__file__).with_name("heat2d_samples.py")
        arguments = [driver, json.dumps(PARAMETERS), out]
        mpirun(ranks, sys.executable, "-m", "mpi4py", *arguments, PYTHONPATH=str(HEAT))
        return np.asarray(np.load(out), dtype=np.float64)
    record = folder / f"{language}{ranks}"
    names = {f"MPIDATA_PARAM_{name.upper()}": str(value) for name, value in PARAMETERS.items()}
    mpirun(ranks, *command(language, folder), RECORDER_FILE=str(record), **names)
    return recorded(record, ranks)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Samples:
    """Return the C solver's samples on one rank."""
    return samples("c", 1, folder)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("language", LANGUAGES)
def test_solvers_converge_with_second_order_to_the_analytic_solution(language: str, ranks: int, folder: Path) -> None:
    out = mpirun(ranks, *command(language, folder), "--verify")
    found = re.search(r"error (\S+) on 31 x 31, (\S+) on 63 x 63: order (\S+)", out)
    assert found, out
    coarse, fine, order = map(float, found.groups())
    assert coarse < 5e-4 and fine < 1.25e-4
    assert 1.9 < order < 2.1


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("language", LANGUAGES)
def test_samples_are_bitwise_equal_in_every_language_on_any_number_of_ranks(
    language: str, ranks: int, folder: Path, reference: Samples
) -> None:
    found = samples(language, ranks, folder)
    assert found.shape == (100, 64, 64)
    assert found.tobytes() == reference.tobytes()


def test_each_side_has_its_temperature(reference: Samples) -> None:
    last = reference[-1]
    sides = {"bottom": last[0, 32], "top": last[-1, 32], "left": last[32, 0], "right": last[32, -1]}
    for side, value in sides.items():
        assert abs(value - PARAMETERS[side]) < 12, side
    assert reference.min() >= min(list(PARAMETERS.values())[1:])
    assert reference.max() <= max(PARAMETERS.values())
