"""Rows put by maps, and local numbers, arrive in their places; each mistake gives one error."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, PROGRAMS, JobFolder, config, python
from test_misuse import assert_failed

FIELDS = {
    "u": {"shape": [9, 2], "dtype": "float64"},
    "v": {"shape": ["rows"]},
    "w": {"shape": ["points"]},
    "ends": {"shape": ["edges"], "dtype": "int32", "index": "rows", "base": 1},
    "own": {"shape": ["points"], "dtype": "int32", "index": "points", "base": 1},
}
TRAINER = """
import numpy as np
from numpy_stream import stream
n = 0
for batch in stream(1):
    simulation, step, n = int(batch["simulation"][0]), int(batch["step"][0]), n + 1
    u = 1000 * simulation + 100 * step + np.arange(18).reshape(9, 2)
    assert np.array_equal(batch["u"][0], u), batch["u"]
    assert np.array_equal(batch["v"], 100 * step + np.arange(10 + step)), batch["v"]
    ranks = len(batch["own"]) // 3
    ends = [(i + rank) % 20 for rank in range(ranks) for i in range(5)]
    assert batch["ends"].tolist() == ends, batch["ends"]
    assert batch["own"].tolist() == list(range(3 * ranks)), batch["own"]
print("=>", n)
"""


def check(folder: JobFolder, **solvers: object) -> None:
    folder.write(train=TRAINER)
    folder.job(
        trainers={"ranks": 2},
        solvers={"groups": 2, "ranks_per_group": 2, **solvers},
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
        lengths={name: {"at_most": 40} for name in ("rows", "points", "edges")},
        fields=FIELDS,
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert sum(int(line) for trainer in (0, 1) for line in result.marked(index=trainer)) == 36


@pytest.mark.parametrize("how", [pytest.param("maps", marks=pytest.mark.full), "new"])
def test_rows_put_in_any_order_arrive(folder: JobFolder, compiled: Callable[[str], Path], how: str) -> None:
    check(folder, program=[str(compiled("scattered")), how])


@pytest.mark.parametrize("how", ["maps", pytest.param("new", marks=pytest.mark.full)])
def test_rows_of_a_carried_program_arrive(
    folder: JobFolder, carried: Callable[..., Path], require: Callable[[str], str], how: str
) -> None:
    check(folder, program=[str(carried("scattered", require("mpicc.mpich"))), how], carried={"ranks": 4})


def test_rows_of_a_fortran_program_arrive(folder: JobFolder, require: Callable[[str], str]) -> None:
    source = PROGRAMS / "solvers/fortran/scattered.f90"
    command = [require("gfortran"), "-Wall", "-O2", source, "-o", folder.path / "solver", *config("--fcarried")]
    subprocess.run(command, check=True)
    check(folder, program=["./solver"], ranks_per_group=1, carried={})


PLACE = "simulation 0, step 1"
MISTAKES = {
    "twice": ["Field 'u': the map has row 1 twice", "(group 0, its rank 1)", PLACE],
    "both": ["Row 0 of field 'u' was put twice, by ranks 0 and 1 of the group", "Solver group 0", PLACE],
    "out": ["Field 'u': the map has row 8, but the field has 8 rows, which are counted from 0", "its rank 1", PLACE],
    "negative": ["Row 3 of a map has the index -1", "its rank 1", PLACE, "Indices count from 0."],
    "missing": ["Row 7 of field 'u' is missing: the maps of all ranks have 7 of its 8 rows", "its rank 0)", PLACE],
    "shape": ["Field 'u': shape[0] is 5, but the map has 4 rows", "its rank 1", PLACE],
    "mixed": ["Field 'u' was put by maps and without one in a step", "Solver group 0", PLACE],
    "mixed-parts": ["Field 'v' was put by maps and without one in a step", "Solver group 0", PLACE],
    "far": ["Row 7 of field 'v' is missing: all ranks have put 8 rows, and rank 1 of the group row 9", PLACE],
    "last": ["Row 7 of field 'v' is missing: the maps of all ranks have 7 of its 8 rows", PLACE],
    "hole": ["Row 3 of field 'v' is missing: the maps of all ranks have 7 of its 8 rows", PLACE],
    "same": ["Row 2 of field 'v' was put twice, by ranks 0 and 1 of the group", "Solver group 0", PLACE],
    "floats": ["Field 'v': the indices are an array of float64 with 1 dimensions", "its rank 1", PLACE],
    "local": ["Field 'ends' has the local number 4, but the map has 4 rows, which are counted from 0", PLACE],
    "local-below": ["Field 'ends' has the local number -1, but the map has 4 rows", "its rank 1", PLACE],
    "no-parts": ["Field 'of_parts' has local numbers, but no field with the length 'rows' was put in parts, without "
                 "maps, in this step: pass the map of its rows (rank 0 of the group)", "simulation 0, step 0"],
    "no-index": ["Field 'u' has no index: its values are not row numbers", "its rank 1", PLACE],
}  # fmt: skip


# Mistakes similar to another one: on the other side of a limit, in parts, in a group of one rank.
FULL = ("negative", "mixed-parts", "last", "hole", "same", "local-below")


@pytest.mark.parametrize(
    ("mistake", "ranks"),
    [
        *(pytest.param(mistake, 2, marks=[pytest.mark.full] * (mistake in FULL)) for mistake in MISTAKES),
        *(pytest.param(mistake, 1, marks=pytest.mark.full) for mistake in ("missing", "last")),
    ],
)
def test_mistakes_with_maps_fail_the_job(folder: JobFolder, mistake: str, ranks: int) -> None:
    folder.job(
        trainers=DRAIN,
        solvers={"ranks_per_group": ranks, "program": python("solvers/mistakes/of_maps.py", mistake)},
        fields={
            "u": {"shape": [8, 2], "dtype": "float64"},
            "v": {"shape": ["rows"], "dtype": "float64"},
            **({"w": {"shape": ["rows"]}} if mistake in ("last", "hole") else {}),
            "ends": {"shape": ["edges"], "dtype": "int64", "index": "rows"},
            "of_parts": {"shape": ["corners"], "dtype": "int64", "index": "rows"},
        },
    )
    assert_failed(folder.run(timeout=30), *MISTAKES[mistake])
