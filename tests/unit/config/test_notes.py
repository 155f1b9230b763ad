"""Keys without effect in their job file are reported once, not refused."""

import os
from pathlib import Path

import pytest
from bad_job_files import GOOD
from click.testing import CliRunner

from mpidata import cli
from mpidata.config import Job, load_job
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.launch.starting.folder.resume import look_at, make_ready
from mpidata.run.rank_files import PlannedRun

TEXT = GOOD + "buffer: {policy: firo, capacity: 20, watermark: 4}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(TEXT)
    return tmp_path / "job.yaml"


def test_parameter_in_no_case_file_or_argument_gives_a_note(path: Path) -> None:
    (path.parent / "case").mkdir()
    (path.parent / "case" / "input.dat").write_text("a {{ alpha:.3e }}")
    output = {"case": "{folder: case, fill: [input.dat]}", "output": '{files: "*.npy"}', "carried": "{}"}
    changes = [f"solvers.{key}={of}" for key, of in output.items()]
    changes += ["solvers.lifetime=simulation", "parameters.space={alpha: [0, 1], beta: [0, 1], gamma: [0, 1]}"]
    notes = load_job(path, [*changes, 'solvers.program=[./heat2d, "{gamma}"]']).notes
    assert len(notes) == 1 and "'parameters.space.beta' occurs in no file" in notes[0]
    assert "only as MPIDATA_PARAM_BETA" in notes[0]


def value(job: Job, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(job, section), name)


@pytest.mark.parametrize(
    ("settings", "key", "nothing", "note"),
    [
        (["trainers.timeout_s=5"], "trainers.timeout_s", 600.0, "is 5.0: no effect with no 'trainers.elastic' and no"),
        (["buffer.policy=fifo"], "buffer.watermark", 0, "is 4: no effect with 'buffer.policy: fifo', "),
        (
            ["parameters.sampler=grid", "parameters.space={alpha: {values: [1, 2]}}"],
            *("parameters.count", None, "is 8: no effect with 'parameters.sampler: grid', "),
        ),
        (
            ["parameters.path=x.csv"],
            *("parameters.path", None, "is 'x.csv': no effect with 'parameters.sampler: uniform'"),
        ),
        (
            ["solvers.start=spawn", "solvers.spares=2"],
            *("solvers.spares", 0, "is 2: no effect with 'solvers.start: spawn', "),
        ),
        (
            ["loaders.start=spawn", "loaders.spares=2"],
            *("loaders.spares", 0, "is 2: no effect with 'loaders.start: spawn', "),
        ),
    ],
)
def test_key_without_effect_is_reported_and_reset(
    path: Path, settings: list[str], key: str, nothing: object, note: str
) -> None:
    assert load_job(path).notes == ()
    job = load_job(path, settings)
    (said,) = job.notes
    assert said.startswith(f"job.yaml: '{key}' {note}") and value(job, key) == nothing
    set_by = [setting for setting in settings if setting.startswith(key)]
    assert said.endswith(f"(--set {set_by[0]})" if set_by else f"(line {7 if 'buffer' in key else 4})")


def test_sampler_that_never_learns_gives_a_note(path: Path) -> None:
    adaptive = ["parameters.sampler=adaptive", "parameters.count=50"]
    (said,) = load_job(path, adaptive).notes
    assert "learns from simulation 50 on ('parameters.adaptive.start'), but there are only 50: all are drawn" in said
    assert load_job(path, [*adaptive, "parameters.adaptive.start=49"]).notes == ()


@pytest.mark.parametrize("sampler", ["breed", "power"])
def test_deprecated_sampler_gives_a_note(path: Path, sampler: str) -> None:
    (said,) = load_job(path, [f"parameters.sampler={sampler}"]).notes
    assert f"'parameters.sampler' is {sampler}, which is deprecated" in said and "Use sobol, or adaptive" in said


def test_check_dry_run_submit_and_the_log_print_the_notes(path: Path) -> None:
    run = CliRunner()
    for command in ("check", "run --dry-run", "submit --print"):
        result = run.invoke(cli.main, [*command.split(), str(path), "--set", "buffer.policy=fifo"])
        assert result.exit_code == 0, result.output
        assert result.output.count("job.yaml: 'buffer.watermark' is 4: no effect") == 1
        if hasattr(result, "output_bytes"):  # click 8.2 and later separate stdout from stderr
            assert ("no effect" in result.stdout) == ("dry-run" in command)
    folder, plan, lock = prepare_run(load_job(path, ["buffer.policy=fifo"]))
    os.close(lock)
    assert (
        PlannedRun(folder, plan).log(0).read_text().startswith("mpidata: job.yaml: 'buffer.watermark' is 4: no effect")
    )
    assert load_job(folder.job).notes == ()
    make_ready(look_at(folder.path, ["buffer.watermark=3"]), "none")
    assert "'buffer.watermark' is 3: no effect" in PlannedRun(folder, plan).log(0).read_text().splitlines()[1]
