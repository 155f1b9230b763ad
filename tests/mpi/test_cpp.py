"""Solvers in C++: arrays of every kind arrive whole, exceptions end their rank, and the loop knows when it is over."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, PROGRAMS, JobFolder, config, environment, mpicc, python
from programs.dtype_values import FIELDS
from test_cancel import check as check_cancelled
from test_cancel import write as write_cancelled
from test_dtypes import run as run_dtypes
from test_inference import DOUBLE
from test_maps import check as check_maps
from test_misuse import assert_failed
from test_published import check as check_published

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-g"]
LIBRARIES = ["-isystem", "/usr/include/eigen3", "-isystem", "/usr/include/trilinos", "-ltrilinos_kokkoscore"]
BOX, MATRIX, ROW = [2, 3, 4], [3, 4], [6]
OF_BOX = [
    *(
        "c_array",
        "c_array_const",
        "pointer",
        "mdspan_right",
        "mdspan_left",
        "mdspan_wide",
        "mdspan_back",
        "mdspan_const",
    ),
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

WITHOUT_BINDINGS = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]  # C++ bindings of old MPIs, whose headers warn
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str]) -> Build:
    """Compile programs/solvers/cpp/<name>.cpp as a user compiles a solver; returns the executable's path."""
    made: dict[tuple[str, ...], Path] = {}
    target = tmp_path_factory.mktemp("cpp")

    def compile_it(
        name: str, compiler: str = "g++", standard: str = "17", *options: str, carried: bool = False
    ) -> Path:
        key = (name, compiler, standard, str(carried))
        if key not in made:
            source, executable = PROGRAMS / "solvers/cpp" / f"{name}.cpp", target / "-".join(key)
            flags = config("--carried") if carried else config("--cflags", "--libs")
            mpicxx = Path(mpicc()).with_name(Path(mpicc()).name.replace("mpicc", "mpicxx"))
            wrapper = [compiler, "-DCARRIED"] if carried else [str(mpicxx), *WITHOUT_BINDINGS]
            command = [*wrapper, f"-std=c++{standard}", *STRICT, source, "-o", executable, *flags, *options]
            variables = environment() | {"OMPI_CXX": require(compiler), "MPICH_CXX": require(compiler)}
            done = subprocess.run(command, capture_output=True, text=True, env=variables)
            assert done.returncode == 0, done.stderr
            made[key] = executable
        return made[key]

    return compile_it


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [
        ("g++", "17"),
        ("clang++", "20"),
        *(pytest.param(*of, marks=pytest.mark.full) for of in [("g++", "20"), ("clang++", "17")]),
    ],
)
def test_every_element_of_every_view_arrives(folder: JobFolder, build: Build, compiler: str, standard: str) -> None:
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


def test_all_dtypes_arrive(folder: JobFolder, build: Build) -> None:
    run_dtypes(folder, FIELDS, program=[str(build("dtypes"))])


@pytest.mark.full
def test_all_dtypes_arrive_if_built_with_clang(folder: JobFolder, build: Build) -> None:
    run_dtypes(folder, FIELDS, program=[str(build("dtypes", "clang++", "20"))])


def test_rows_put_in_any_order_arrive(folder: JobFolder, build: Build) -> None:
    check_maps(folder, program=[str(build("scattered"))])


def test_published_arrays_and_answers_are_correct(folder: JobFolder, build: Build) -> None:
    space = {"alpha": [0.0, 1.0], "mesh": {"value": "coarse"}}
    folder.write(net=DOUBLE)
    folder.job(
        trainers={"program": python("published/trainer.py")},
        solvers={"groups": 2, "ranks_per_group": 2, "program": [str(build("loop"))]},
        inference={"function": "net:answer"},
        parameters={"count": 4, "space": space},
    )
    check_published(folder.run())


def test_loop_ends_when_the_simulation_is_cancelled(folder: JobFolder, build: Build) -> None:
    write_cancelled(folder, solvers={"groups": 2, "ranks_per_group": 2, "program": [str(build("endless"))]})
    check_cancelled(folder, folder.run(), ranks=2)


def test_loop_ends_when_the_job_stops(folder: JobFolder, build: Build) -> None:
    folder.write(train="from numpy_stream import stream\nfor _ in zip(range(5), stream()):\n    pass\n")
    folder.job(solvers={"groups": 1, "ranks_per_group": 2, "program": [str(build("endless"))]})
    result = folder.run()
    assert result.status == 0 and result.summary["status"] == "stopped", result.logs()
    assert [result.marked("solver", rank) for rank in (0, 1)] == [["stopped"], ["stopped"]]
    assert result.summary["lost_groups"] == 0 and "killed" not in result.output, result.output


@pytest.mark.parametrize("carried", [True, pytest.param(False, marks=pytest.mark.full)])
def test_views_of_device_memory_arrive(folder: JobFolder, build: Build, standin: Path, carried: bool) -> None:
    folder.write(
        train="from numpy_stream import stream\n"
        "for s in stream():\n    print('=>', int(s['v'][0]), s['u'].T.ravel().tolist() == s['v'].tolist(),\n"
        "          s['w'].tolist() == s['u'][::-1].tolist(), s['own'].tolist())\n"
    )
    program = [str(build("device_views", "g++", "17", carried=carried)), str(standin)]
    fields = {"u": {"shape": [4, 6]}, "w": {"shape": [4, 6]}}
    fields |= {"v": {"shape": [24], "dtype": "float64"}, "own": {"shape": ["n"], "dtype": "int64", "index": "n"}}
    solvers = {"program": program} | ({"carried": {}} if carried else {})
    folder.job(solvers=solvers, fields=fields, lengths={"n": {"at_most": 4}})
    result = folder.run()
    assert result.status == 0, result.logs()
    expected = {
        f"{100 * simulation + 30 * step} True True [3, 2, 1, 0]" for simulation in range(4) for step in range(3)
    }
    assert set(result.marked()) == expected


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("iput", "3: Field 'u': an array in the memory of a device cannot be lent. Step 0. Use mpidata_put or"),
    ],
)
def test_lending_device_memory_is_refused(build: Build, standin: Path, call: str, sentence: str) -> None:
    command = [build("device_views", "g++", "17", carried=True), standin, call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert sentence in done.stdout, done.stdout + done.stderr


def test_questions_with_device_memory_fail_the_job(folder: JobFolder, build: Build, standin: Path) -> None:
    folder.write(net="def answer(batch):\n    return {'y': batch['x'][:, 0]}\n")
    program = [str(build("device_views", "g++", "17")), str(standin), "infer"]
    folder.job(trainers=DRAIN, solvers={"program": program}, inference={"function": "net:answer"})
    assert_failed(folder.run(), "Array 'x' is in the memory of a device", "Pass an array in the memory of the host.")


STILL = "mpidata: an exception has left the scope of mpidata::job, so this rank ends, and its simulation is run again."


@pytest.mark.ulfm
@pytest.mark.parametrize("how", ["outside", "twice", pytest.param("nowhere", marks=pytest.mark.full)])
def test_exception_that_leaves_the_job_ends_its_rank(folder: JobFolder, build: Build, how: str) -> None:
    solvers = {"groups": 2, "ranks_per_group": 2, "program": [str(build("throws")), how]}
    folder.job(trainers=DRAIN, solvers=solvers)
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == 4 * 4, result.logs()
    assert [entry["simulation"] for entry in result.summary["retries"]] == [1] and result.summary["lost_groups"] == 1
    said = result.logs()
    assert (STILL in said) == (how != "nowhere") and ("inside: as asked\n" in said) == (how == "twice"), said
    assert "outside: as asked" not in said


def test_exception_in_a_carried_program_retries_the_simulation(folder: JobFolder, build: Build) -> None:
    folder.job(trainers=DRAIN, solvers={"carried": {}, "program": [str(build("throws", carried=True))]})
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["samples"]["received"] == 4 * 4, result.logs()
    assert [entry["simulation"] for entry in result.summary["retries"]] == [1]
    assert STILL in result.logs() and "outside: as asked" not in result.logs()


def test_exception_caught_in_the_loop_can_abandon_the_simulation(folder: JobFolder, build: Build) -> None:
    solvers = {"groups": 2, "ranks_per_group": 2, "program": [str(build("throws")), "given up"]}
    folder.job(trainers=DRAIN, solvers=solvers)
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["lost_groups"] == 0, result.logs()
    assert [(entry["simulation"], entry["how"]) for entry in result.summary["set_aside"]] == [
        (1, "gave it up: as asked")
    ]
    assert result.summary["samples"]["received"] == 3 * 4 + 2


def test_exception_outside_a_job_ends_the_program(build: Build, tmp_path: Path) -> None:
    command = [build("throws", carried=True), "alone"]
    for status in (1, 0):  # the program throws once
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == status and (STILL in done.stderr) == (status == 1) and "outside" not in done.stdout
    done = subprocess.run([build("alone", carried=True), "unwinding"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "simulation 0\ncaught\n" and STILL not in done.stderr


def test_too_many_rows_to_gather_fail_the_job(folder: JobFolder, build: Build) -> None:
    program = [str(build("alone", carried=True)), "huge"]
    fields = {"u": {"shape": ["n"], "dtype": "float64"}}
    folder.job(
        trainers=DRAIN, solvers={"carried": {}, "program": program}, fields=fields, lengths={"n": {"at_most": 4}}
    )
    assert_failed(folder.run(timeout=60), "Field 'u': a part of 2305843009213693952 elements is more than 2147483647")


WRONG = {
    "start": (3, "Field 'u': the block has 2 dimensions, but its start 1. Step 0. Give one index for each dimension."),
    "strides": (
        3,
        "Field 'u': an array has not as many strides as extents. Step 0. Give one of each for each dimension.",
    ),
    "dimensions": (3, "Field 'u': 7 dimensions. Step 0. 0 to 6 dimensions are possible."),
    "order": (2, "mpidata_infer was called outside a job"),
    "map": (3, "index -1"),
    "moved": (3, "Field 'u': the map is empty, because it was moved from. Step 0. Pass the map that it was moved to."),
    "moved indices": (3, "Field 'u': the map is empty, because it was moved from. Step 0."),
    "extent": (3, "Field 'u': extent -1 in dimension 0. Step 0. Extents must not be negative."),
    "memory": (11, "Out of memory for a question. Step 0."),
    "question": (3, "Field 'x': an array of a question does not lie side by side in C order. Step 0."),
    "parameter": (8, "MPIDATA_PARAM_ALPHA='big' is not a finite number"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_are_thrown_as_exceptions(build: Build, wrong: str) -> None:
    variables = environment() | {
        "MPIDATA_PARAM_BETA": "2.5",
        "MPIDATA_PARAM_ALPHA": "big" if wrong == "parameter" else "1",
    }
    command = [build("alone", carried=True), wrong]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    thrown, after, again = done.stdout.splitlines()
    code, sentence = WRONG[wrong]
    assert thrown.startswith(f"{code}: ") and sentence in thrown
    assert after == ("0.00 0" if wrong == "parameter" else "2.50 0")
    assert again.startswith("2: mpidata_finalize was called after mpidata_finalize")
    assert done.returncode == 0
