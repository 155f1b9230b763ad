"""The parameters: same seed, same numbers; within their ranges; both parts cover the space."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.stats import qmc

from mpidata.config import Job, load_job
from mpidata.errors import JobFileError, MpidataError
from mpidata.sampling.drawing import draw_parameters
from mpidata.sampling.parameters_file import append_rows, mark_cancelled, read_parameters, write_parameters

TEXT = """\
seed: 7
trainers: {program: [python, -c, pass]}
solvers: {program: [python, -c, pass]}
parameters: {count: 200, space: {alpha: [0.01, 0.1], left: [100, 500]}}
validation: {count: 10}
fields: {u: {shape: [4]}}
"""
RANDOM = ("uniform", "latin_hypercube", "halton", "sobol")


def load(folder: Path, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(TEXT)
    return load_job(folder / "job.yaml", overrides)


@pytest.mark.parametrize("sampler", RANDOM)
@pytest.mark.filterwarnings("error")
def test_seed_determines_the_parameters(tmp_path: Path, sampler: str) -> None:
    job = load(tmp_path, f"parameters.sampler={sampler}")
    table = draw_parameters(job)
    assert table.shape == (210, 2) and table.dtype == np.float64 and table.flags.c_contiguous
    np.testing.assert_array_equal(draw_parameters(job), table)
    assert not np.any(draw_parameters(load(tmp_path, f"parameters.sampler={sampler}", "seed=8")) == table)
    assert len(np.unique(table, axis=0)) == 210
    assert (table >= [0.01, 100]).all() and (table <= [0.1, 500]).all()


@pytest.mark.parametrize("sampler", RANDOM)
def test_validation_count_does_not_change_the_training_parameters(tmp_path: Path, sampler: str) -> None:
    few, many = (
        draw_parameters(load(tmp_path, f"parameters.sampler={sampler}", f"validation.count={n}")) for n in (0, 100)
    )
    np.testing.assert_array_equal(many[:200], few)


@pytest.mark.parametrize("sampler", ["latin_hypercube", "halton", "sobol"])
@pytest.mark.parametrize("seed", range(5))
def test_training_and_validation_parameters_cover_the_space(tmp_path: Path, sampler: str, seed: int) -> None:
    job = load(tmp_path, f"parameters.sampler={sampler}", "validation.count=50", f"seed={seed}")
    unit = (draw_parameters(job) - [0.01, 100]) / [0.09, 400]
    for part in (unit[:200], unit[200:]):
        for column in part.T:
            assert np.abs(np.sort(column) - (np.arange(len(part)) + 0.5) / len(part)).max() < 0.09
        independent = [qmc.discrepancy(np.random.default_rng(i).random(part.shape)) for i in range(20)]
        assert qmc.discrepancy(part) < np.median(independent)


def test_a_latin_hypercube_has_one_point_in_each_stratum_of_both_parts(tmp_path: Path) -> None:
    table = draw_parameters(load(tmp_path, "parameters.sampler=latin_hypercube"))
    unit = (table - [0.01, 100]) / [0.09, 400]
    for part in (unit[:200], unit[200:]):
        for column in part.T:
            np.testing.assert_array_equal(np.sort(np.floor(column * len(part))), np.arange(len(part)))


@pytest.mark.parametrize("sampler", RANDOM)
def test_widest_range_gives_finite_distinct_values(tmp_path: Path, sampler: str) -> None:
    job = load(tmp_path, f"parameters.sampler={sampler}", "parameters.space.alpha=[-1.7e308, 1.7e308]")
    alpha = draw_parameters(job)[:, 0]
    assert np.isfinite(alpha).all() and len(np.unique(alpha)) == 210


MIXED = "space: {n: {integers: [1, 8]}, c: {choices: [9, 0.5, 2]}, k: {value: 3}, x: [0, 1]}"


@pytest.mark.parametrize("sampler", RANDOM)
def test_integers_choices_and_constants_are_drawn_evenly(tmp_path: Path, sampler: str) -> None:
    job = load(tmp_path, f"parameters={{count: 240, sampler: {sampler}, {MIXED}}}", "validation.count=24")
    table = draw_parameters(job)
    assert table.shape == (264, 4) and (table[:, 2] == 3).all()
    for column, values in ((table[:, 0], range(1, 9)), (table[:, 1], (9, 0.5, 2))):
        found, counts = np.unique(column[:240], return_counts=True)
        assert found.tolist() == sorted(values)
        least = 0.5 if sampler == "uniform" else 0.9
        assert counts.min() >= least * 240 / len(values) and counts.max() <= 240 / len(values) / least


def test_grid_accepts_integers_choices_and_constants(tmp_path: Path) -> None:
    space = "parameters={sampler: grid, space: {n: {integers: [1, 3]}, c: {choices: [9, 0.5]}, k: {value: 0}}}"
    table = draw_parameters(load(tmp_path, space, "validation.count=30"))
    assert table[:6].tolist() == [[n, c, 0] for n in (1, 2, 3) for c in (9, 0.5)]
    assert {tuple(row) for row in table[6:].tolist()} <= {tuple(row) for row in table[:6].tolist()}


def test_a_file_needs_no_column_for_a_constant(tmp_path: Path) -> None:
    (tmp_path / "design.csv").write_text("a\n1\n2\n")
    table = "parameters={sampler: file, path: design.csv, space: {k: {value: 7}, a: {integers: [1, 2]}}}"
    assert draw_parameters(load(tmp_path, table, "validation.count=1")).tolist() == [[7, 1], [7, 2]]


def test_single_simulation_of_one_parameter_is_drawn(tmp_path: Path) -> None:
    for sampler in RANDOM:
        job = load(tmp_path, f"parameters={{count: 1, sampler: {sampler}, space: {{a: [1, 2]}}}}", "validation.count=0")
        assert draw_parameters(job).shape == (1, 1)


def test_a_grid_has_all_combinations_and_validation_lies_within(tmp_path: Path) -> None:
    space = "parameters={sampler: grid, space: {a: {values: [3, 1]}, b: {values: [5]}, c: {values: [0.1, 0.2, 0.3]}}}"
    table = draw_parameters(load(tmp_path, space, "validation.count=40"))
    assert table[:6].tolist() == [[a, 5, c] for a in (3, 1) for c in (0.1, 0.2, 0.3)]
    validation = table[6:]
    assert validation.shape == (40, 3) and (validation[:, 1] == 5).all()
    assert ((validation >= [1, 5, 0.1]) & (validation <= [3, 5, 0.3])).all()
    assert len(np.unique(validation[:, 0])) == 40


@pytest.mark.parametrize("form", ["csv", "columns", "matrix"])
def test_a_file_gives_its_first_rows_to_training_and_its_last_to_validation(tmp_path: Path, form: str) -> None:
    values = np.random.default_rng(1).normal(size=(6, 2))
    path = tmp_path / "design.dat"
    if form == "csv":
        path.write_text("b,a\n" + "".join(f"{b!r},{a!r}\n" for b, a in values.tolist()))
    else:
        with h5py.File(path, "w") as file:
            if form == "columns":
                file["a"], file["b"] = values[:, 1], values[:, 0]
            else:
                file["parameters"] = values
                file["parameters"].attrs["names"] = ["b", "a"]
    table = "parameters={sampler: file, path: design.dat, space: {b: , a: }}"
    np.testing.assert_array_equal(draw_parameters(load(tmp_path, table, "validation.count=2")), values)
    some = draw_parameters(load(tmp_path, table, "parameters.count=3", "validation.count=1"))
    np.testing.assert_array_equal(some, values[[0, 1, 2, 5]])
    one = draw_parameters(load(tmp_path, table, "parameters.space={a: }", "validation.count=0"))
    np.testing.assert_array_equal(one, values[:, 1:])


def test_a_file_that_changes_after_loading_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "design.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    job = load(tmp_path, "parameters={sampler: file, path: design.csv}", "validation.count=1")
    for text, message in [
        ("a,b\n1,2\n3,nan\n", "row 2 \\(line 3\\), column 'b' is nan"),
        ("a,b\n1,2\n", "it has 1 rows, not 2"),
        ("a,c\n1,2\n3,4\n", "it has no column 'b'"),
    ]:
        path.write_text(text)
        with pytest.raises(JobFileError, match=message):
            draw_parameters(job)


SAMPLER = """
import numpy
class Sampler:
    def __init__(self, space, seed):
        self.space, self.seed = space, seed
    def sample(self, count):
        assert self.space == {"alpha": [0.01, 0.1], "left": [100.0, 500.0]}, self.space
        BODY
"""


def sample(folder: Path, body: str, name: str, *settings: str) -> np.ndarray:
    (folder / f"{name}.py").write_text(SAMPLER.replace("BODY", body))
    try:
        return draw_parameters(load(folder, f"parameters.sampler={name}:Sampler", *settings))
    finally:
        sys.modules.pop(name, None)
        assert str(folder) not in sys.path


def test_sampler_class_can_import_neighbouring_modules_late(tmp_path: Path) -> None:
    (tmp_path / "needed_late.py").write_text("ROW = [3, 4]")
    body = "from needed_late import ROW; return numpy.tile(ROW, (count, 1))"
    assert (sample(tmp_path, body, "late_sampler") == [3, 4]).all()
    sys.modules.pop("needed_late")


def test_sampler_class_draws_all_rows(tmp_path: Path) -> None:
    table = sample(tmp_path, "return [[self.seed, i] for i in range(count)]", "own_sampler")
    np.testing.assert_array_equal(table, np.stack([np.full(210, 7), np.arange(210)], axis=1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return numpy.zeros((count, 3))",
            "shape \\(210, 3\\). Return shape \\(210, 2\\), one row per simulation, one col",
        ),
        ("return numpy.zeros((count - 1, 2))", "returns shape \\(209, 2\\)"),
        ("return numpy.full((count, 2), numpy.inf)", "row 0, 'alpha' of its sample is inf. Return finite numbers."),
        (
            "return numpy.zeros((count, 2)), ['a'] * count",
            "returns \\(array, rules\\). Return only the array, \\(array",
        ),
        (
            "raise RuntimeError('two\\nlines')",
            "it fails with RuntimeError: two lines, in .*bad_sampler.py line 8. Correct",
        ),
        ("return 'abc'", "returns no array of numbers: .* Correct it."),
        ("return None", "returns no array of numbers|returns shape"),
        (
            "return numpy.full((count, 2), 1j)",
            "no array of numbers: complex128 is not a dtype of real numbers. Correct it.",
        ),
        ("return numpy.ma.masked_less(numpy.eye(count, 2), 1)", "row 0, 'left' of its sample is nan. Return finite"),
        ("return numpy.ma.masked_less(numpy.eye(count, 2, dtype=int), 1)", "masked elements, and int64 has no NaN for"),
        ("return 1 / 0", "it fails with ZeroDivisionError: division by zero, in .*bad_sampler.*py line 8. Correct it."),
    ],
)
def test_sampler_class_with_invalid_results_is_refused(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(JobFileError, match=f"job.yaml: 'parameters.sampler': bad_sampler:Sampler: .*{message}"):
        sample(tmp_path, body, "bad_sampler")


WEIGHTS = "parameters.weights=true"


def test_weights_are_1_for_uniform_samplers(tmp_path: Path) -> None:
    for sampler in ("uniform", "sobol", "latin_hypercube"):
        job = load(tmp_path, f"parameters.sampler={sampler}", WEIGHTS)
        table = draw_parameters(job)
        assert job.columns == ("alpha", "left", "weight") and job.parameter_names == ("alpha", "left")
        np.testing.assert_array_equal(table[:, :2], draw_parameters(load(tmp_path, f"parameters.sampler={sampler}")))
        assert (table[:, 2] == 1).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return numpy.zeros((count, 2)), [''] * count, [-1] * count, numpy.arange(count)", ""),
        (
            "return numpy.zeros((count, 2))",
            "returns no weights. Return \\(array, rules, parents, weights\\), or remove",
        ),
        ("return numpy.zeros((count, 2)), [''] * count, [-1] * count", "returns no weights"),
        ("return numpy.zeros((count, 2)), None, None, [1.0]", "weights of shape \\(1,\\). Return shape \\(210,\\)"),
        (
            "return numpy.zeros((count, 2)), None, None, -numpy.ones(count)",
            "weight of row 0 of its sample is -1.0. Return",
        ),
        ("return numpy.zeros((count, 2)), None, None, numpy.nan * numpy.ones(count)", "weight of row 0 .* is nan"),
        ("return numpy.zeros((count, 2)), None, None, 'abc'", "no array of numbers"),
    ],
)
def test_weights_of_a_sampler_class_are_checked(tmp_path: Path, body: str, message: str) -> None:
    if not message:
        assert (sample(tmp_path, body, "weighing", WEIGHTS)[:, 2] == np.arange(210)).all()
        assert sample(tmp_path, body, "weighing").shape == (210, 2)  # weights are not requested
        return
    with pytest.raises(JobFileError, match=message):
        sample(tmp_path, body, "weighing", WEIGHTS)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("parameters.sampler=breed", "'parameters.weights' is true, but 'sampler: breed' does not know its density"),
        ("parameters.space.weight=[0, 1]", "'parameters.space.weight': 'parameters.weights' adds this"),
        ("fields.weight={shape: [2]}", "'fields.weight': 'parameters.weights' adds 'weight' to a batch"),
    ],
)
def test_settings_that_conflict_with_weights_are_refused(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(JobFileError, match=message):
        load(tmp_path, setting, WEIGHTS)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Sampler:\n    pass", r"TypeError: it is called as Sampler\(space=..., seed=...\): .*\.$"),
        ("def Sampler(simulation):\n    pass", r"TypeError: it is called as Sampler\(space=..., seed=...\): "),
        ("Sampler = 5", r"TypeError: made:Sampler is not a class, but int\.$"),
    ],
)
def test_unusable_sampler_class_is_refused_without_a_library_line(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "made.py").write_text(code)
    try:
        with pytest.raises(JobFileError, match=message):
            draw_parameters(load(tmp_path, "parameters.sampler=made:Sampler"))
    finally:
        sys.modules.pop("made", None)


def test_parameters_are_kept_to_the_last_bit(tmp_path: Path) -> None:
    job = load(tmp_path, "parameters.space.alpha=[-1e308, 1e308]")
    table = draw_parameters(job)
    table[0] = [5e-324, -0.0]
    write_parameters(tmp_path / "parameters.csv", job.parameter_names, table)
    assert (tmp_path / "parameters.csv").read_text().startswith("simulation,alpha,left\n0,5e-324,-0.0\n1,")
    read, drawn = read_parameters(tmp_path / "parameters.csv", job.parameter_names, 200, 10)
    assert read.tobytes() == table.tobytes() and drawn is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simulation,a\n0,1\n2,1\n", "does not list simulations 0, 1, 2"),
        ("a\n1\n", "does not list simulations 0, 1, 2"),
        ("simulation,a\n0,x\n", "it is not a table of numbers"),
        ("simulation,a\n0,1\n1\n", "it is not a table of numbers"),
        ('simulation,a\n0,"1\n', "it is not a table of numbers"),
        ("simulation,a\n0,inf\n1,1\n", "not all its cells hold finite numbers"),
        ("simulation,a\n0,1\n1,\n", "it is not a table of numbers"),
        ("", "does not list simulations 0, 1, 2"),
    ],
)
def test_a_damaged_parameters_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "parameters.csv").write_text(text)
    with pytest.raises(MpidataError, match=f"parameters.csv: .*{message}"):
        read_parameters(tmp_path / "parameters.csv", ["a"], 1, 1)
    with pytest.raises(MpidataError, match="none.csv: cannot read"):
        read_parameters(tmp_path / "none.csv", ["a"], 1, 1)


def test_growing_parameters_file_is_read_and_its_torn_line_removed(tmp_path: Path) -> None:
    path = tmp_path / "parameters.csv"
    write_parameters(path, ["a", "rule"], np.array([[1.0, 2.0]]), first=3, learned=True)
    append_rows(path, 0, np.array([[0.5, 4.0], [0.25, 5.0]]), [("uniform", ""), ("bred", "0")])
    assert path.read_text() == (
        "simulation,a,rule,rule,parent\n3,1.0,2.0,validation,\n0,0.5,4.0,uniform,\n1,0.25,5.0,bred,0\n"
    )
    whole = path.read_bytes()
    for torn in (b"", b"2", b"2,0.125,6.0,uniform,"):
        path.write_bytes(whole + torn)
        table, drawn = read_parameters(path, ["a", "rule"], 3, 1)
        assert drawn == 2 and path.read_bytes() == whole
        np.testing.assert_array_equal(table, [[0.5, 4.0], [0.25, 5.0], [np.nan, np.nan], [1.0, 2.0]])
    for lines in ([0, 2, 3], [0, 1, 3], [0, 2, 1, 3], [0]):
        path.write_text("".join(whole.decode().splitlines(keepends=True)[line] for line in lines))
        with pytest.raises(MpidataError, match="it does not list simulations"):
            read_parameters(path, ["a", "rule"], 3, 1)


@pytest.mark.parametrize("learned", [False, True])
def test_parameters_file_marks_cancelled_simulations(tmp_path: Path, learned: bool) -> None:
    path = tmp_path / "parameters.csv"
    if learned:
        write_parameters(path, ["a", "state"], np.empty((0, 2)), learned=True)
        append_rows(path, 0, np.array([[0.5, 4.0], [0.25, 5.0]]), [("uniform", ""), ("bred", "0")])
    else:
        write_parameters(path, ["a", "state"], np.array([[0.5, 4.0], [0.25, 5.0]]))
    for cancelled in ([1], [0, 1]):
        mark_cancelled(path, cancelled, columns=2)
        rows = path.read_text().splitlines()
        assert rows[0] == "simulation,a,state" + ",rule,parent" * learned + ",state"
        assert [number for number in (0, 1) if rows[1 + number].endswith(",cancelled")] == cancelled
        table, drawn = read_parameters(path, ["a", "state"], 2, 0)
        np.testing.assert_array_equal(table, [[0.5, 4.0], [0.25, 5.0]])
        assert drawn == (2 if learned else None)
    if learned:
        append_rows(path, 2, np.array([[1.0, 6.0]]), [("bred", "1")])
        assert read_parameters(path, ["a", "state"], 3, 0)[1] == 3


LEARNS = (
    SAMPLER
    + """
    def observe(self, simulations, parameters, losses):
        pass
"""
)


def test_only_validation_is_drawn_in_advance_for_a_learning_sampler(tmp_path: Path) -> None:
    body = "assert count == 4; return numpy.tile([0.05, 200.0], (count, 1))"
    (tmp_path / "learns.py").write_text(LEARNS.replace("BODY", body))
    key = "parameters.sampler=learns:Sampler"
    try:
        table = draw_parameters(load(tmp_path, key, "parameters.generation=4"))
        assert table.shape == (10, 2) and len(np.unique(table, axis=0)) == 10
        assert ((table >= [0.01, 100]) & (table <= [0.1, 500])).all()
        with pytest.raises(JobFileError, match="each parameter needs a range, also 'alpha'"):
            draw_parameters(load(tmp_path, key, "parameters.space={alpha: }"))
    finally:
        sys.modules.pop("learns", None)
