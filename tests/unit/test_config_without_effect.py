"""Keys that are checked and kept, but that this version does not act on."""

from pathlib import Path

import pytest

from mpidata.config import Job, load_job, resolved_yaml, warn

# The whole job file, with every key but `function`, `window` and `path`.
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
  spares: 0
  retries: 2                     # further tries of one simulation
  timeout_s: 60                  # silence after which a group is declared lost
parameters:
  count: 200
  sampler: sobol                 # uniform | latin_hypercube | halton | sobol | grid | file | "module:Class"
  space: {alpha: [0.01, 0.1], left: [100, 500]}
validation: {count: 10}          # further simulations, never trained on
fields:
  temperature: {dtype: float32, shape: [64, 64]}
buffer: {policy: reservoir, capacity: 2000, watermark: 200, tail: drop}      # samples, per trainer
checkpoint: {every_s: 300, keep: 2}
launch: {with: auto}
"""

MINIMAL = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""

RETRIES = (
    "job.yaml: 'solvers.retries' has no effect in this version: a simulation that its solver gives up is not tried "
    "again, and a solver that dies ends the job."
)
TIMEOUT = (
    "job.yaml: 'solvers.timeout_s' has no effect in this version: a group that falls silent is waited for without "
    "limit."
)
CHECKPOINT = (
    "job.yaml: 'checkpoint' has no effect in this version: none are written, and a job that was interrupted starts "
    "anew."
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    return tmp_path


def load(folder: Path, text: str, *overrides: str) -> Job:
    (folder / "job.yaml").write_text(text)
    return load_job(folder / "job.yaml", overrides)


def test_the_whole_job_file_loads_as_it_stands(folder: Path) -> None:
    job = load(folder, WHOLE)
    assert (job.name, job.seed, job.output, job.launch.with_, job.world_size) == ("heat2d", 7, "runs", "auto", 11)
    assert (job.trainers.ranks, job.trainers.program) == (2, ("python", "train.py"))
    solvers = job.solvers
    assert (solvers.groups, solvers.ranks_per_group, solvers.program) == (4, 2, ("./heat2d",))
    assert (solvers.start, solvers.lifetime, solvers.spares) == ("split", "pool", 0)
    assert (solvers.retries, solvers.timeout_s) == (2, 60.0)
    assert (job.simulations, job.parameters.sampler, job.validation.count) == (200, "sobol", 10)
    assert job.parameters.space == {"alpha": (0.01, 0.1), "left": (100.0, 500.0)}
    assert job.fields["temperature"].dtype == "float32" and job.fields["temperature"].shape == (64, 64)
    assert job.buffer.model_dump() == {"policy": "reservoir", "capacity": 2000, "watermark": 200, "tail": "drop"}
    assert job.checkpoint is not None and job.checkpoint.model_dump() == {"every_s": 300.0, "keep": 2}
    assert job.without_effect() == [f"{RETRIES} (line 15)", f"{TIMEOUT} (line 16)", f"{CHECKPOINT} (line 25)"]


def test_keys_that_are_not_set_are_not_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = load(folder, MINIMAL)
    assert (job.solvers.retries, job.solvers.timeout_s, job.checkpoint) == (2, 60.0, None)
    assert job.without_effect() == []
    assert load(folder, MINIMAL + "checkpoint:").without_effect() == []
    warn(job)
    assert capsys.readouterr() == ("", "")


def test_keys_that_are_set_are_told_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    warn(load(folder, MINIMAL + "checkpoint: {}", "solvers.retries=2"))
    assert capsys.readouterr() == ("", f"{RETRIES} (--set solvers.retries=2)\n{CHECKPOINT} (line 5)\n")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("solvers.timeout_s=1.5", TIMEOUT),
        ("solvers={program: [./heat2d], retries: 0}", RETRIES),
        ("checkpoint={keep: 1}", CHECKPOINT),
        ("checkpoint.keep=1", CHECKPOINT),
    ],
)
def test_the_setting_that_sets_a_key_is_told(folder: Path, setting: str, sentence: str) -> None:
    assert load(folder, MINIMAL, setting).without_effect() == [f"{sentence} (--set {setting})"]


@pytest.mark.parametrize("text", [MINIMAL, MINIMAL + "checkpoint: ", MINIMAL + "checkpoint: {keep: 3}", WHOLE])
def test_the_resolved_file_tells_what_the_job_file_does(folder: Path, text: str) -> None:
    job = load(folder, text)
    again = load(folder, resolved_yaml(job))
    assert again == job and resolved_yaml(again) == resolved_yaml(job)
    assert len(again.without_effect()) == len(job.without_effect())
    assert again.checkpoint == job.checkpoint
    for key in ("retries", "timeout_s", "checkpoint"):
        assert (f"{key}:" in resolved_yaml(job)) == any(f"{key}'" in line for line in job.without_effect())
