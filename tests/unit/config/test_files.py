"""Other files that a job file names: programs, functions, tables of parameters."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError

TEXT = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


def load(folder: Path, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(TEXT)
    return load_job(folder / "job.yaml", overrides)


def problems(folder: Path, *overrides: str) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        load(folder, *overrides)
    return [re.sub(r" \(--set .*\)$", "", line).removeprefix("job.yaml: ") for line in caught.value.problems]


def test_programs_are_searched_in_the_folder_and_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "heat9d").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    for program in ("./heat2d", "heat2d", str(folder / "heat2d"), "heat9d", "bin/heat9d", "python"):
        load(folder, f"solvers.program=[{program}]")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("solvers.program=[./heat3d]", "'solvers.program' names './heat3d', but {}/heat3d does not exist. Build or"),
        ("solvers.program=[heat3d]", "'solvers.program' names 'heat3d', which is neither in {} nor on PATH. Build or"),
        ("solvers.program=[/no/heat]", "'solvers.program' names '/no/heat', but /no/heat does not exist."),
        (
            "solvers.program=[./train.py]",
            "'solvers.program' names './train.py', which is not executable. Run `chmod +x ",
        ),
        ("solvers.program=[train.py]", "'solvers.program' names 'train.py', which is not executable. Run `chmod +x "),
        ("trainers.program=[/dev/null]", "'trainers.program' names '/dev/null', which exists but cannot be executed. "),
        ("trainers.program=[./]", "'trainers.program' names './', which exists but cannot be executed. Name a"),
        ("trainers.program=[python, tarin.py]", "'trainers.program' runs 'tarin.py', but {}/tarin.py does not exist."),
    ],
)
def test_missing_or_non_executable_program_is_refused(folder: Path, setting: str, sentence: str) -> None:
    (line,) = problems(folder, setting)
    assert line.startswith(sentence.format(folder, folder))


def test_python_options_are_not_mistaken_for_a_script(folder: Path) -> None:
    load(folder, "trainers.program=[python, -m, train]", "solvers.program=[python, -c, pass]")


def test_functions_are_found_without_importing_their_modules(folder: Path) -> None:
    (folder / "heat.py").write_text(
        "raise SystemExit\nif True:\n    def simulate(alpha): yield\nfrom x import y as other"
    )
    (folder / "package" / "inner").mkdir(parents=True)
    (folder / "package" / "__init__.py").touch()
    (folder / "package" / "inner" / "model.py").write_text("from elsewhere import *")
    for function in ("heat:simulate", "heat:other", "package.inner.model:anything", "json:loads"):
        assert load(folder, f"solvers={{function: '{function}'}}").solvers.function == function


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            "haet:simulate",
            "'solvers.function' is 'haet:simulate', but there is no module 'haet' in {}. Correct the name.",
        ),
        ("heat.inner:f", "'solvers.function' is 'heat.inner:f', but there is no module 'heat.inner' in {}. Correct"),
        (
            "heat:simluate",
            "'solvers.function' is 'heat:simluate', but {}/heat.py has no 'simluate'. Did you mean 'simulate'?",
        ),
        ("heat:x", "'solvers.function' is 'heat:x', but {}/heat.py has no 'x'. Correct the name."),
    ],
)
def test_a_missing_function_is_refused(folder: Path, function: str, sentence: str) -> None:
    (folder / "heat.py").write_text("def simulate(alpha): yield")
    (line,) = problems(folder, f"solvers={{function: '{function}'}}")
    assert line.startswith(sentence.format(folder))


def test_a_missing_sampler_class_is_refused(folder: Path) -> None:
    (folder / "mine.py").write_text("class Sampler: ...")
    load(folder, "parameters.sampler=mine:Sampler")
    (line,) = problems(folder, "parameters.sampler=mine:Sampelr")
    assert line.endswith("has no 'Sampelr'. Did you mean 'Sampler'?")


TABLE = "parameters={sampler: file, path: design.csv}"


def test_a_csv_table_gives_names_and_count(folder: Path) -> None:
    (folder / "design.csv").write_text('\ufeffalpha, "left"\n\n0.1,1\n0.2,2\r\n0.3,3e0\n', encoding="utf-8")
    job = load(folder, TABLE, "validation.count=1")
    assert (job.parameter_names, job.simulations, job.parameters.count) == (("alpha", "left"), 2, 2)
    assert load(folder, TABLE, "parameters.space={left: }").parameter_names == ("left",)
    assert load(folder, TABLE, "parameters.space={left: [1, 3], alpha: [0, 1]}").parameter_names == ("left", "alpha")
    assert load(folder, TABLE, "parameters.count=1", "validation.count=2").simulations == 1


def test_hdf5_tables_have_one_dataset_per_parameter_or_names(folder: Path) -> None:
    with h5py.File(folder / "design.csv", "w") as file:
        file["alpha"], file["left"] = np.arange(5.0), np.arange(5)
        file["picture"] = np.zeros((2, 2))
    job = load(folder, TABLE)
    assert (job.parameter_names, job.simulations) == (("alpha", "left"), 5)
    with h5py.File(folder / "design.csv", "w") as file:
        file["parameters"] = np.ones((3, 2), dtype=np.float32)
        file["parameters"].attrs["names"] = ["left", "alpha"]
    job = load(folder, TABLE)
    assert (job.parameter_names, job.simulations) == (("left", "alpha"), 3)


@pytest.mark.parametrize(
    ("text", "more", "sentences"),
    [
        ("a,b\n1,2\n3,nan\n", "", ["row 2 (line 3), column 'b' is nan. Put a finite number there."]),
        ("a,b\n1,2\n\n-inf,4\n", "", ["row 2 (line 4), column 'a' is -inf. Put a finite number there."]),
        ("a,b\n1,x y\n,4\n", "", ["row 2 (line 3), column 'a' is empty. Put", "row 1 (line 2), column 'b' is 'x y'."]),
        ("a,b\n1,2\n3\n", "", ["row 2 (line 3) has 1 cells, not 2. Correct it."]),
        ("1,2\n3,4\n", "", ["its first line is '1,2'. Give a first line with the parameters' names."]),
        ("a,a\n3,4\n", "", ["the column 'a' occurs twice."]),
        ("a,2b\n3,4\n", "", ["column '2b': '2b' is not a name. Use letters, digits and underscores"]),
        ("simulation,b\n3,4\n", "", ["column 'simulation': a parameter cannot be named 'simulation'"]),
        ("", "", ["it is empty. Give a first line"]),
        ("a,b\n", "", ["it has 0 rows, but 1 simulations and 0 for validation need 1. Add rows"]),
        ("a,b\n1,2\n", "validation.count=1", ["it has 1 rows, but 1 simulations and 1 for validation need 2."]),
        ("a\n1\n", f"{TABLE[:-1]}, count: 1}}\nvalidation.count=1", ["it has 1 rows, but 1 simulations and 1 for"]),
        ("a,b\n1,2\n", "parameters.count=2", ["it has 1 rows, but 2 simulations and 0 for validation need 2."]),
        ("alpha,b\n1,2\n", "parameters.space={alhpa: }", ["it has no column 'alhpa'. Did you mean 'alpha'?"]),
        ("a,b\n1,2\n", "parameters.space={zzz: , a: }", ["it has no column 'zzz'. The columns are a, b."]),
        ("a,b\n1,1.5\n", "parameters.space.b={integers: [1, 2]}", ["is 1.5, outside 'parameters.space.b'"]),
        ("a,b\n1,2\n", "parameters.space.b={choices: [1, 3]}", ["is 2.0, outside 'parameters.space.b', {'choices': "]),
        ("a,b\n1,2\n", "parameters.space.b=[3, 4]", ["column 'b' is 2.0, outside 'parameters.space.b', [3.0, 4.0]"]),
        ("a\n" + "nan\n" * 13, "", ["is nan"] * 10 + ["3 more cells are not finite or outside their range."]),
        ('a,b\n"1,2\n', "", ["not a CSV file: "]),
    ],
)  # fmt: skip
def test_a_bad_csv_table_is_refused(folder: Path, text: str, more: str, sentences: list[str]) -> None:
    (folder / "design.csv").write_text(text)
    lines = problems(folder, TABLE, *more.splitlines())
    assert len(lines) == len(sentences)
    for line, sentence in zip(lines, sentences, strict=True):
        assert line.startswith("'parameters.path': design.csv: ") and sentence in line


def test_a_bad_hdf5_table_is_refused(folder: Path) -> None:
    with h5py.File(folder / "design.csv", "w") as file:
        file["alpha"], file["left"] = np.array([1.0, np.nan]), np.arange(2)
    (line,) = problems(folder, TABLE)
    assert line.endswith("row 2, column 'alpha' is nan. Put a finite number there.")
    with h5py.File(folder / "design.csv", "w") as file:
        file["alpha"], file["left"] = np.arange(3), np.arange(2)
    assert "its datasets differ in length (alpha: 3, left: 2)." in problems(folder, TABLE)[0]
    with h5py.File(folder / "design.csv", "w") as file:
        file["parameters"] = np.ones((3, 2))
    assert "has 2 columns and the names []. Give its attribute 'names'" in problems(folder, TABLE)[0]
    with h5py.File(folder / "design.csv", "w") as file:
        file["name"] = "x"
    assert "it has neither 1-D datasets of numbers nor" in problems(folder, TABLE)[0]
    (folder / "design.csv").write_bytes(b"\x89HDF\r\n\x1a\n")
    assert "cannot read" in problems(folder, TABLE)[0]


def test_missing_table_is_reported_with_other_mistakes(folder: Path) -> None:
    lines = problems(folder, TABLE, "trainers.ranks=0")
    assert "'trainers.ranks' is 0" in lines[0] or "'trainers.ranks' is 0" in lines[1]
    assert any(
        f"cannot read {folder}/design.csv: No such file or directory. Correct the path." in line for line in lines
    )


LONG = "n" * 5000


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (f"solvers.program=[{LONG}]", "'solvers.program' names 'nnnn"),
        (f"solvers.program=[./{LONG}]", "'solvers.program' names './nnn"),
        (f"trainers.program=[python, {LONG}]", "'trainers.program' runs 'nnnn"),
        (
            "trainers.program=[python, /]",
            "'trainers.program' runs '/', which is a folder without a `__main__.py`. Name a",
        ),
        (f"folder=/{LONG}", "'folder' is '/nnn"),
        ("output=/etc/passwd", "'output' is '/etc/passwd', but /etc/passwd is not a folder. Name a folder"),
        ("output=train.py/runs", "'output' is 'train.py/runs', but {}/train.py is not a folder. Name a folder"),
        ("record.path=train.py/all", "'record.path' is 'train.py/all', but {}/train.py is not a folder. Name a folder"),
        (
            "parameters.count=1000000000",
            "the job has 1000000000 simulations with 1000000000 values of parameters. Use",
        ),
        (
            "validation.count=1000000000",
            "the job has 1000000008 simulations with 1000000008 values of parameters. Use",
        ),
        (
            "solvers={program: [./heat2d], groups: 100000, ranks_per_group: 1000000}",
            "the job has 100000000002 ranks, more",
        ),
        (f"name={LONG}", "'name' has 5000 letters, too many for a folder. Use at most 200."),
        (
            "fields={" + 128 * "n" + ": {shape: []}}",
            "'fields." + 128 * "n" + "': the name has 128 letters. Use at most 127",
        ),
        ("parameters.space={" + 128 * "n" + ": [0, 1]}", "the name has 128 letters. Use at most 127."),
    ],
)
def test_impossible_paths_names_and_counts_are_refused(folder: Path, setting: str, sentence: str) -> None:
    (found,) = problems(folder, setting)
    assert sentence.replace("{}", str(folder)) in found


def test_names_of_the_maximum_length_are_accepted(folder: Path) -> None:
    name = 127 * "n"
    load(folder, f"fields={{{name}: {{shape: []}}}}", f"parameters.space={{{name}: [0, 1]}}", "output=new/runs")


@pytest.mark.parametrize(
    ("names", "shape", "sentence"),
    [
        ([b"\xff", b"b"], (9, 2), "column '\N{REPLACEMENT CHARACTER}'"),
        ([], (9, 0), "its dataset 'parameters' has no columns. Give it one for each parameter."),
        ([b"a"], (10**9, 1), "it has 1000000000 numbers, more than 100000000. Use fewer rows."),
    ],
)
def test_hdf5_tables_with_invalid_names_or_shapes_are_refused(
    folder: Path, names: list[bytes], shape: tuple[int, int], sentence: str
) -> None:
    with h5py.File(folder / "t.h5", "w") as file:
        data = file.create_dataset("parameters", shape, "f8", chunks=(9, 1) if shape[1] else None, fillvalue=0.5)
        data.attrs["names"] = np.array(names, dtype="S1")
    found = problems(folder, "parameters={sampler: file, path: t.h5}")
    assert any(sentence in line for line in found), found


def test_huge_hdf5_column_is_refused(folder: Path) -> None:
    with h5py.File(folder / "t.h5", "w") as file:
        file.create_dataset("alpha", (10**12,), "f8", chunks=(9,))
    (found,) = problems(folder, "parameters={sampler: file, path: t.h5}")
    assert "it has 1000000000000 numbers" in found
