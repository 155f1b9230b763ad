"""Arrays of every kind, rank and section reach the C functions whole and in order through the Fortran module."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from mpidata.native import constants

HERE = Path(__file__).parent
MODULE = HERE.parent.parent / "fortran_api" / "mpidata.f90"
STRICT = ["-Wall", "-Wextra", "-Werror", "-std=f2018", "-g"]
DTYPES = {dtype.number: np.dtype(name) for name, dtype in constants.DTYPES.items() if name != "bfloat16"}
KINDS = {"real32": 1, "real64": 2, "int32": 3, "int64": 4, "complex32": 14, "complex64": 15}

pytestmark = pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")


class Put(NamedTuple):
    """One recorded put: the call's name, the array as seen by C, and the start of the block."""

    verb: str
    array: npt.NDArray[np.generic]
    start: tuple[int, ...]


def read_exit_note(path: Path) -> tuple[dict[str, Put], list[str]]:
    """Return the puts by field, and the lines of all other calls in a recorder's file."""
    puts: dict[str, Put] = {}
    lines: list[str] = []
    with path.open("rb") as record:
        while line := record.readline().decode().rstrip("\n"):
            verb, *words = line.split(" ")
            if verb not in ("put", "put_block", "iput"):
                lines.append(line)
                continue
            field, dtype, ndim, *numbers = words[0], *map(int, words[1:])
            data = record.read(numbers[-1])
            array = np.frombuffer(data, DTYPES[dtype]).reshape(numbers[:ndim])
            assert field not in puts
            puts[field] = Put(verb, array, tuple(numbers[ndim:-1]))
    return puts, lines


def whole(rank: int) -> npt.NDArray[np.int64]:
    """Return the program's array with this rank, indexed from 0, with dimensions in Fortran's order."""
    extents = (4, 3, 2, 3, 2, 2)[:rank]
    return sum((10**d * (np.indices(extents)[d] + 1) for d in range(rank)), np.zeros(extents, np.int64))


A2, A3, A6 = whole(2), whole(3), whole(6)
# Dimensions are in Fortran's order; C must see the transposed arrays.
EXPECTED = {
    "rank0": np.array(7),
    **{f"rank{rank}": whole(rank) for rank in range(1, 7)},
    "element": A2[2, 1],
    "row": A2[1, :],
    "inner": A2[1:3, 1:3],
    "strided": A2[::2, ::2],
    "negative": A2[::-2, ::-1],
    "vector": A2[[3, 0, 1], 1],
    "expression": A2 + 1,
    "deep": A6[1:4, 2, ::-1, ::2, :, 1],
    "empty": A2[:0],
    "transposed": A2.T,
    "shifted": A2,
    "shifted_inner": A2[1:3, 1:3],
    "shifted_negative": A2[::-1, 2],
    "pointer": A2[::-1, ::2],
    "component": whole(1),
    "assumed": A2[::-2],
    "assumed_section": A2[::-2][1::-1, 1:3],
    "explicit": A2.reshape((2, 6), order="F"),
    "explicit_section": A2.reshape((2, 6), order="F")[1, ::2],
    "block": A2[1:3],
    "block_ierror": A3,
    "iput": A2,
    "iput_block": A2[:, 1:3],
    "iput_scalar": A2[3, 2],
}
STARTS = {"block": (4, 2), "block_ierror": (2, 1, 0), "iput_block": (2, 1)}


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program; the recorder's file is written beside it."""
    environment = {
        **os.environ,
        "RECORDER_FILE": str(program.with_suffix(".record")),
        "RECORDER_SIMULATIONS": "2",
        "MPIDATA_PARAM_ALPHA": "0.1",
    }
    return subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module", params=["-O0", "-O2", "-fcheck=all"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the module, the test program and the recorder."""
    folder = tmp_path_factory.mktemp("fortran")
    subprocess.run(
        ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-c", HERE / "recorder.c", "-o", folder / "recorder.o"],
        check=True,
    )
    command = ["gfortran", *STRICT, request.param, "-J", folder, MODULE, HERE / "put_all.F90", folder / "recorder.o"]
    subprocess.run([*command, "-o", folder / "put_all"], check=True)
    return folder / "put_all"


def test_every_array_arrives_complete_and_in_order(program: Path) -> None:
    done = run(program)
    assert done.returncode == 0, done.stderr
    puts, lines = read_exit_note(program.with_suffix(".record"))
    assert set(puts) == {f"{kind}_{case}" for kind in KINDS for case in EXPECTED}
    for kind, dtype in KINDS.items():
        for case, values in EXPECTED.items():
            put = puts[f"{kind}_{case}"]
            assert put.array.dtype == DTYPES[dtype]
            assert put.array.shape == values.T.shape, (kind, case)
            np.testing.assert_array_equal(put.array, values.T, err_msg=f"{kind} {case}")
            assert put.verb == {"block": "put_block", "iput": "iput"}.get(case.split("_")[0], "put")
            assert put.start == STARTS.get(case, (0,) * values.ndim)
    assert lines == [
        "init 5",
        "next 0",
        "step 0.25",
        "step 0.5",
        "fail it diverged, say",
        "next 1",
        "finalize",
    ]


def test_an_error_without_ierror_stops_with_the_sentence(program: Path) -> None:
    done = run(program, "stop")
    assert done.returncode != 0
    assert "mpidata: The field 'refused' is refused. A test. Use another name." in done.stderr


def test_contiguous_arrays_are_passed_without_a_temporary(tmp_path: Path) -> None:
    """A whole array is passed on without a temporary, which would cost a copy per put."""
    source = tmp_path / "whole.f90"
    source.write_text(
        "subroutine send(u)\n  use mpidata\n  double precision, intent(in), contiguous :: u(:, :)\n"
        "  call mpidata_put('temperature', u)\nend subroutine send\n"
    )
    command = ["gfortran", "-Warray-temporaries", "-Werror", "-J", tmp_path, "-c"]
    subprocess.run([*command, MODULE, "-o", tmp_path / "module.o", "-Wno-array-temporaries"], check=True)
    subprocess.run([*command, source, "-o", tmp_path / "whole.o"], check=True)
