"""Loading good job files: defaults, overrides, and the resolved file."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mpidata.config import Job, load_job, resolved_yaml
from mpidata.config.parameters import Values
from mpidata.config.reference import EXAMPLE
from mpidata.errors import JobFileError

MINIMAL = """
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}
fields: {u: {shape: [4]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    return tmp_path


def load(folder: Path, text: str, *overrides: str, name: str = "job.yaml") -> Job:
    (folder / name).write_text(text)
    return load_job(folder / name, overrides)


def test_only_four_sections_are_required_and_the_rest_has_defaults(folder: Path) -> None:
    job = load(folder, MINIMAL, name="heat 2d.yaml")
    assert job.name == "heat-2d"
    assert (job.seed, job.output, job.folder, job.path) == (0, "runs", folder, folder / "heat 2d.yaml")
    assert (job.trainers.ranks, job.solvers.groups, job.solvers.ranks_per_group, job.solvers.window) == (1, 1, 1, 4)
    assert (job.buffer.policy, job.buffer.capacity, job.buffer.tail) == ("reservoir", 1000, "drop")
    assert (job.validation.count, job.launch.with_, job.parameters.sampler) == (0, "auto", "uniform")
    assert job.fields["u"].dtype == "float32" and job.fields["u"].shape == (4,)
    assert (job.simulations, job.parameter_names, job.world_size) == (8, ("alpha",), 3)


def test_the_example_of_the_reference_page_loads(folder: Path) -> None:
    job = load(folder, EXAMPLE)
    assert job.world_size == 1 + 2 + 4 * 2
    assert job.parameters.space == {"alpha": (0.01, 0.1), "left": (100.0, 500.0)}


@pytest.mark.parametrize(
    ("buffer", "watermark"),
    [
        ("{capacity: 50}", 5),
        ("{policy: firo, capacity: 1}", 0),
        ("{policy: fifo}", 0),
        ("{policy: fifo, watermark: 0}", 0),
        ("{policy: firo, capacity: 5, watermark: 4}", 4),
        ("{policy: reservoir, capacity: 5, watermark: 5}", 5),
    ],
)
def test_the_watermark_depends_on_the_policy(folder: Path, buffer: str, watermark: int) -> None:
    assert load(folder, MINIMAL + f"buffer: {buffer}").buffer.watermark == watermark


def test_fields_have_zero_to_six_dimensions(folder: Path) -> None:
    fields = {"s": "[]", "six": "[1, 2, 3, 4, 5, 6]", "largest": f"[{2**31 - 1}]"}
    text = MINIMAL + "".join(f"\n  {name}: {{dtype: uint8, shape: {shape}}}" for name, shape in fields.items())
    job = load(folder, text.replace("fields: {u: {shape: [4]}}", "fields:"))
    assert [field.shape for field in job.fields.values()] == [(), (1, 2, 3, 4, 5, 6), (2**31 - 1,)]


def test_arguments_are_texts_as_they_are_written(folder: Path) -> None:
    job = load(folder, MINIMAL, "solvers.program=[./heat2d, 010, 1e-3, no, 64, 0x10, ~]")
    assert job.solvers.program == ("./heat2d", "010", "1e-3", "no", "64", "0x10", "~")
    text = MINIMAL.replace("[./heat2d]", "[./heat2d, 010, yes]")
    assert load(folder, text).solvers.program == ("./heat2d", "010", "yes")


def test_numbers_and_booleans_are_those_of_yaml_1_2(folder: Path) -> None:
    for name in ("no", "12:30", "010", "2026-11-21", "0b1"):
        text = MINIMAL.replace("[4]", "[4]}, no: {shape: [0x10]") + f"\noutput: {name}"
        job = load(folder, text)
        assert (job.output, list(job.fields), job.fields["no"].shape) == (name, ["u", "no"], (16,))
    for number in ("1e-3", "1.E-3", "+.001", "0.001"):
        assert load(folder, MINIMAL, f"parameters.space.alpha=[{number}, 1]").parameters.space["alpha"] == (0.001, 1.0)


def test_overrides_replace_and_add_keys(folder: Path) -> None:
    settings = ["buffer.capacity=4000", "seed=3", "name=other", "fields.u.shape=[2, 2]", "parameters.space.b=[0, 1]"]
    job = load(folder, MINIMAL, *settings, "seed=4")
    assert (job.buffer.capacity, job.seed, job.name, job.fields["u"].shape) == (4000, 4, "other", (2, 2))
    assert job.parameter_names == ("alpha", "b")


def test_a_value_of_an_override_may_hold_an_equals_sign(folder: Path) -> None:
    job = load(folder, MINIMAL, "solvers.program=[./heat2d, a=b]")
    assert job.solvers.program == ("./heat2d", "a=b")


def test_anchors_and_merge_keys_work(folder: Path) -> None:
    text = MINIMAL.replace("{u: {shape: [4]}}", "{u: &u {dtype: int32, shape: [4]}, v: {<<: *u, shape: [5]}}")
    job = load(folder, text)
    assert (job.fields["v"].dtype, job.fields["v"].shape) == ("int32", (5,))


GRID = "parameters: {sampler: grid, space: {b: {values: [1, 2, 3]}, a: {values: [0.5, -1]}}}"
FILE = "parameters: {sampler: file, path: design.csv}"


@pytest.mark.parametrize(
    "parameters", ["", GRID, FILE, "parameters: {sampler: file, path: design.csv, space: {left: }}"]
)
def test_the_resolved_file_gives_an_equal_job_from_any_place(folder: Path, parameters: str) -> None:
    (folder / "design.csv").write_text("beta,left,alpha\n1,2,3\n4,5,6\n7,8,9\n")
    (folder / "heat2d").chmod(0o755)
    text = (
        MINIMAL.replace("parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}", parameters) if parameters else MINIMAL
    )
    job = load(folder, text, "solvers.program=[./heat2d, '1e-3', no, 'a: b']", "validation.count=1")
    run = folder / "runs" / "job" / "1"
    run.mkdir(parents=True)
    again = load(run, resolved_yaml(job), name="renamed.yaml")
    assert again == job
    assert again.parameter_names == job.parameter_names and again.simulations == job.simulations
    assert resolved_yaml(again) == resolved_yaml(job)
    assert load(folder, text, "seed=1") != job


@pytest.mark.parametrize(
    "output", ["1e-3", "no", "010", "0x1F", "1.5", "null", "2026-11-21", "<<", "a: b", "é", "true"]
)
def test_texts_that_look_like_something_else_stay_texts(folder: Path, output: str) -> None:
    job = load(folder, MINIMAL, f"output='{output}'")
    assert load(folder, resolved_yaml(job)) == job and job.output == output
    assert yaml.safe_load(resolved_yaml(job))["output"] == output


def test_a_grid_counts_its_points(folder: Path) -> None:
    job = load(folder, MINIMAL.replace("parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}", GRID))
    assert job.simulations == 6
    assert job.parameters.space["a"] == Values(values=(0.5, -1.0))


def test_a_relative_folder_is_that_of_the_file(folder: Path) -> None:
    (folder / "jobs").mkdir()
    assert load(folder / "jobs", MINIMAL, "folder=..").folder == folder


def test_a_job_cannot_be_changed(folder: Path) -> None:
    job = load(folder, MINIMAL)
    with pytest.raises(Exception, match="frozen"):
        job.seed = 1


def test_the_error_has_its_sentences_apart(folder: Path) -> None:
    with pytest.raises(JobFileError) as caught:
        load(folder, MINIMAL + "a: 1\nb: 2")
    assert len(caught.value.problems) == 2
    assert str(caught.value).splitlines() == list(caught.value.problems)


def test_loading_imports_nothing_heavy(folder: Path) -> None:
    (folder / "job.yaml").write_text(MINIMAL)
    program = (
        "import sys; from mpidata.config import load_job; load_job(sys.argv[1]);"
        "print([name for name in ('numpy', 'scipy', 'torch', 'h5py', 'mpi4py') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(folder / "job.yaml")], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")
