"""Loading good job files: defaults, overrides, and the resolved file."""

import os
from pathlib import Path

import pytest
import yaml

from mpidata.config import Job, load_job, resolved_yaml
from mpidata.config.parameters import Points
from mpidata.config.reference import EXAMPLE
from mpidata.errors import JobFileError

MINIMAL = """
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}
fields: {u: {shape: [4]}}
"""


def load(folder: Path, text: str, *overrides: str, name: str = "job.yaml") -> Job:
    (folder / name).write_text(text)
    return load_job(folder / name, overrides)


def test_only_four_sections_are_required_and_the_rest_has_defaults(folder: Path) -> None:
    job = load(folder, MINIMAL, name="heat 2d.yaml")
    assert job.name == "heat-2d"
    assert (job.seed, job.output, job.folder, job.path) == (0, "runs", folder, folder / "heat 2d.yaml")
    assert (job.trainers.ranks, job.solvers.groups, job.solvers.ranks_per_group, job.in_flight) == (1, 1, 1, 8)
    assert (job.buffer.policy, job.buffer.capacity, job.buffer.tail) == ("reservoir", 1000, "drop")
    assert (job.validation.count, job.launch.with_, job.parameters.sampler) == (0, "auto", "uniform")
    assert job.fields["u"].dtype == "float32" and job.fields["u"].shape == (4,)
    assert (job.simulations, job.parameter_names, job.world_size) == (8, ("alpha",), 3)
    solvers = job.solvers
    assert (solvers.start, solvers.lifetime, solvers.spares, solvers.retries) == ("split", "pool", 0, 2)
    assert (solvers.timeout_s, solvers.start_timeout_s, solvers.tolerate, solvers.hosts) == (60.0, None, None, None)
    assert (job.checkpoint, job.record, job.launch.fault_tolerance) == (None, None, "auto")
    assert job.saving.model_dump() == {"every_s": 0.0, "keep": 2, "within_s": 60.0}


def test_the_example_of_the_reference_page_loads(folder: Path) -> None:
    job = load(folder, EXAMPLE)
    assert job.world_size == 1 + 2 + 4 * 2
    assert job.parameters.space == {"alpha": (0.01, 0.1), "left": (100.0, 500.0)}


# A job file with every key except `function`, `in_flight` and `path`.
WHOLE = """\
name: heat2d
seed: 7
output: runs                     # run folders: runs/heat2d/1, 2, ...
trainers:
  ranks: 2
  program: [python, train.py]    # an ordinary script; uses mpidata.MPIStreamDataset
solvers:
  groups: 4                      # simulations running at once
  ranks_per_group: 2
  program: [./heat2d]            # any executable linked with libmpidata; or, instead of program:
  # function: "heat:simulate"    # a Python generator function
  start: split                   # split | spawn
  lifetime: pool                 # pool | simulation (spawn only)
  spares: 1
  retries: 3                     # further tries of one simulation
  timeout_s: 30                  # silence after which a group is declared lost
  start_timeout_s: 900           # the same, before the first step of a simulation
  tolerate: 5
  hosts: [node3, "node4:2"]
parameters:
  count: 200
  sampler: sobol                 # uniform | latin_hypercube | halton | sobol | grid | file | "module:Class"
  space: {alpha: [0.01, 0.1], left: [100, 500]}
validation: {count: 10}          # further simulations, never trained on
fields:
  temperature: {dtype: float32, shape: [64, 64]}
buffer: {policy: reservoir, capacity: 2000, watermark: 200, tail: drop}      # samples, per trainer
checkpoint: {every_s: 300, keep: 3}
record: {path: samples, every: 2, when_slow: skip}
launch: {with: auto, fault_tolerance: false}
"""


def test_complete_job_file_loads_with_all_its_values(folder: Path) -> None:
    job = load(folder, WHOLE)
    assert (job.name, job.seed, job.output, job.launch.with_, job.world_size) == ("heat2d", 7, "runs", "auto", 13)
    assert (job.trainers.ranks, job.trainers.program) == (2, ("python", "train.py"))
    solvers = job.solvers
    assert (solvers.groups, solvers.ranks_per_group, solvers.program) == (4, 2, ("./heat2d",))
    assert (solvers.start, solvers.lifetime, solvers.spares) == ("split", "pool", 1)
    assert (solvers.retries, solvers.timeout_s, solvers.start_timeout_s, solvers.tolerate) == (3, 30.0, 900.0, 5)
    assert solvers.hosts == ("node3", "node4:2")
    assert (job.simulations, job.parameters.sampler, job.validation.count) == (200, "sobol", 10)
    assert job.parameters.space == {"alpha": (0.01, 0.1), "left": (100.0, 500.0)}
    assert job.fields["temperature"].dtype == "float32" and job.fields["temperature"].shape == (64, 64)
    assert job.buffer.model_dump() == {
        "policy": "reservoir",
        "capacity": 2000,
        "watermark": 200,
        "tail": "drop",
        "repeats": None,
        "pinned": False,
    }
    assert job.saving is job.checkpoint and job.saving.model_dump() == {"every_s": 300.0, "keep": 3, "within_s": 60.0}
    assert job.record is not None
    assert job.record.model_dump() == {"path": "samples", "every": 2, "when_slow": "skip"}
    assert job.launch.fault_tolerance is False
    assert load(folder, resolved_yaml(job)) == job


@pytest.mark.parametrize(
    ("solvers", "ranks", "layout"),
    [
        ("spares: 1", 4, "1 scheduler, 1 trainer, 1 group of 1 and 1 spare"),
        ("groups: 3, spares: 2, ranks_per_group: 2", 12, "1 scheduler, 1 trainer, 3 groups of 2 and 2 spares"),
        ("groups: 3, ranks_per_group: 2", 8, "1 scheduler, 1 trainer and 3 groups of 2"),
        ("groups: 3, ranks_per_group: 2, start: spawn", 2, "1 scheduler, 1 trainer; 3 groups of 2 started later"),
    ],
)
def test_layout_counts_the_ranks_that_start_together(folder: Path, solvers: str, ranks: int, layout: str) -> None:
    job = load(folder, MINIMAL.replace("[./heat2d]", f"[./heat2d], {solvers}"))
    assert (job.world_size, job.layout) == (ranks, layout)


@pytest.mark.parametrize(
    ("loaders", "ranks", "layout"),
    [
        ("{}", 3, "1 scheduler, 1 trainer and 1 loader"),
        ("{ranks: 8, spares: 2}", 12, "1 scheduler, 1 trainer, 8 loaders and 2 spares"),
        ("{ranks: 8, start: spawn, spares: 2}", 2, "1 scheduler, 1 trainer; 8 loaders started later"),
    ],
)
def test_job_with_loaders_and_without_solvers_loads(folder: Path, loaders: str, ranks: int, layout: str) -> None:
    job = load(folder, f"trainers: {{program: [python, train.py]}}\nloaders: {loaders}\n")
    assert (job.world_size, job.layout, job.simulations, job.parameter_names) == (ranks, layout, 0, ())
    assert job.loaders is not None and (job.loaders.retries, job.loaders.timeout_s) == (2, 60.0)
    assert (job.loaders.start_timeout_s, job.loaders.tolerate) == (600.0, 0)
    assert "solvers" not in job.resolved() and load(folder, resolved_yaml(job)) == job


def test_job_with_loaders_and_solvers_loads(folder: Path) -> None:
    job = load(folder, MINIMAL + "loaders: {ranks: 2}\n", "solvers.ranks_per_group=3")
    assert (job.world_size, job.layout) == (7, "1 scheduler, 1 trainer, 1 group of 3 and 2 loaders")
    assert load(folder, resolved_yaml(job)) == job and not job.spawns
    assert load(folder, MINIMAL + "loaders: {start: spawn}").spawns


def test_placeholders_in_program_arguments_are_accepted(folder: Path) -> None:
    text = MINIMAL.replace("[./heat2d]", "[./heat2d, 'a={alpha}', '{{x}}{simulation}', plain]")
    job = load(folder, text, "solvers.start=spawn", "solvers.lifetime=simulation")
    assert job.solvers.program == ("./heat2d", "a={alpha}", "{{x}}{simulation}", "plain")
    assert load(folder, text.replace("{alpha}", "{beta")).solvers.program  # a pool's arguments are used unchanged


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


def test_arguments_stay_texts_as_written(folder: Path) -> None:
    job = load(folder, MINIMAL, "solvers.program=[./heat2d, 010, 1e-3, no, 64, 0x10, ~]")
    assert job.solvers.program == ("./heat2d", "010", "1e-3", "no", "64", "0x10", "~")
    text = MINIMAL.replace("[./heat2d]", "[./heat2d, 010, yes]")
    assert load(folder, text).solvers.program == ("./heat2d", "010", "yes")


def test_numbers_and_booleans_follow_yaml_1_2(folder: Path) -> None:
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


def test_override_values_may_contain_equals_signs(folder: Path) -> None:
    job = load(folder, MINIMAL, "solvers.program=[./heat2d, a=b]")
    assert job.solvers.program == ("./heat2d", "a=b")


def test_anchors_and_merge_keys_work(folder: Path) -> None:
    text = MINIMAL.replace("{u: {shape: [4]}}", "{u: &u {dtype: int32, shape: [4]}, v: {<<: *u, shape: [5]}}")
    job = load(folder, text)
    assert (job.fields["v"].dtype, job.fields["v"].shape) == ("int32", (5,))


GRID = "parameters: {sampler: grid, space: {b: {values: [1, 2, 3]}, a: {values: [0.5, -1]}}}"


MIXED = "parameters: {count: 8, space: {a: {integers: [1, 8]}, b: {choices: [3, 0.5]}, c: {value: 0}, d: [0, 1]}}"


FILE = "parameters: {sampler: file, path: design.csv}"


@pytest.mark.parametrize(
    "parameters", ["", GRID, MIXED, FILE, "parameters: {sampler: file, path: design.csv, space: {left: }}"]
)
def test_resolved_file_loads_as_an_equal_job_from_any_folder(folder: Path, parameters: str) -> None:
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
def test_texts_that_look_like_other_types_stay_texts(folder: Path, output: str) -> None:
    job = load(folder, MINIMAL, f"output='{output}'")
    assert load(folder, resolved_yaml(job)) == job and job.output == output
    assert yaml.safe_load(resolved_yaml(job))["output"] == output


def test_a_grid_counts_its_points(folder: Path) -> None:
    job = load(folder, MINIMAL.replace("parameters: {count: 8, space: {alpha: [0.01, 1e-1]}}", GRID))
    assert job.simulations == 6
    assert job.parameters.space["a"] == Points(values=(0.5, -1.0))


def test_relative_folder_is_resolved_from_the_job_file(folder: Path) -> None:
    (folder / "jobs").mkdir()
    assert load(folder / "jobs", MINIMAL, "folder=..").folder == folder


def test_a_job_cannot_be_changed(folder: Path) -> None:
    job = load(folder, MINIMAL)
    with pytest.raises(Exception, match="frozen"):
        job.seed = 1


def test_error_lists_its_messages_separately(folder: Path) -> None:
    with pytest.raises(JobFileError) as caught:
        load(folder, MINIMAL + "a: 1\nb: 2")
    assert len(caught.value.problems) == 2
    assert str(caught.value).splitlines() == list(caught.value.problems)


def test_folder_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/nu\xff"
    os.mkdir(folder)
    path = Path(os.fsdecode(folder), "job.yaml")
    path.write_text("trainers: {program: [python, train.py]}")
    with pytest.raises(JobFileError) as caught:
        load_job(path)
    assert str(caught.value).endswith("/nu\\xff, is not UTF-8, so the files of a run cannot hold it. Rename it.")
    assert str(caught.value).isascii()
