"""Solvers in C++: arrays of every kind arrive whole, exceptions end their rank, and the loop knows when it is over."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs import PROGRAMS, JobFolder, config, environment, mpicc, python

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-g"]
LIBRARIES = ["-isystem", "/usr/include/eigen3", "-isystem", "/usr/include/trilinos", "-ltrilinos_kokkoscore"]
BOX, MATRIX, ROW = [2, 3, 4], [3, 4], [6]
OF_BOX = [
    *("c_array", "c_array_const", "pointer", "mdspan_right", "mdspan_left", "mdspan_wide", "mdspan_back", "mdspan_const"),
    *("made_up_left", "made_up_managed", "made_up_new", "mdspan_blocks", "lent_left", "lent_blocks", "kokkos_slice"),
]
OF_MATRIX = [
    *("kokkos_right", "kokkos_const", "kokkos_left", "kokkos_strided", "kokkos_pairs", "kokkos_inner"),
    *("eigen_columns", "eigen_const", "eigen_rows", "eigen_array", "eigen_block", "eigen_block_of_rows"),
    *("eigen_transposed", "eigen_map", "eigen_ref"),
]
OF_ROW = [
    *("vector", "vector_const", "vector_moved", "span", "span_const", "span_std", "pointer_strided", "lent"),
    *("eigen_vector", "eigen_row_vector", "eigen_diagonal"),
]
SHAPES: dict[str, list[int]] = {
    **dict.fromkeys(OF_BOX, BOX),
    **dict.fromkeys(OF_MATRIX, MATRIX),
    **dict.fromkeys(OF_ROW, ROW),
    **dict.fromkeys(["scalar", "scalar_int", "mdspan_single", "kokkos_single"], []),
    **{"array": [2, 3], "rows": [4, 3], "blocks": [4, 3], "kokkos_column": [4], "eigen_fixed": [3, 3]},
    **{"eigen_row": [4], "eigen_column": [4]},
}
DTYPES = {
    **dict.fromkeys(["c_array", "c_array_const", "pointer", "kokkos_left", "eigen_fixed", "eigen_vector"], "float32"),
    **{"array": "int16", "rows": "int32", "blocks": "int32", "scalar_int": "int64", "kokkos_strided": "int64"},
    **{"kokkos_pairs": "complex64", "eigen_row_vector": "int32"},
}

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Build:
    """Compile programs/solvers/cpp/<name>.cpp as a user compiles a solver; returns the executable's path."""
    made: dict[tuple[str, ...], Path] = {}
    target = tmp_path_factory.mktemp("cpp")

    def compile_it(name: str, compiler: str = "g++", standard: str = "17", *options: str, carried: bool = False) -> Path:
        key = (name, compiler, standard, str(carried))
        if key not in made:
            source, executable = PROGRAMS / "solvers/cpp" / f"{name}.cpp", target / "-".join(key)
            flags = config("--carried") if carried else config("--cflags", "--libs")
            wrapper = [compiler, "-DCARRIED"] if carried else [str(Path(mpicc()).with_name("mpicxx"))]
            command = [*wrapper, f"-std=c++{standard}", *STRICT, source, "-o", executable, *flags, *options]
            variables = environment() | {"OMPI_CXX": require(compiler)}
            done = subprocess.run(command, capture_output=True, text=True, env=variables)
            assert done.returncode == 0, done.stderr
            made[key] = executable
        return made[key]

    return compile_it


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("g++", "17"), ("clang++", "20"), *(pytest.param(*of, marks=pytest.mark.full) for of in [("g++", "20"), ("clang++", "17")])],
)
def test_every_element_of_every_view(folder: JobFolder, build: Build, compiler: str, standard: str) -> None:
    program = build("views", compiler, standard, *LIBRARIES)
    folder.job(
        trainers={"program": python("trainers/checks/check_views.py")},
        solvers={"program": [str(program)]},
        parameters={"count": 2, "space": {"alpha": [0.0, 1.0]}},
        fields={name: {"shape": shape, "dtype": DTYPES.get(name, "float64")} for name, shape in SHAPES.items()},
    )
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.marked() == [f"checked {2 * 3 * len(SHAPES)}"], result.logs()
