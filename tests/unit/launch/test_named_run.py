"""Runs under a name: errors for a job file that was edited since, and for an invalid note."""

import os
from contextlib import closing
from pathlib import Path

import pytest
from launch_job import write_job
from rich.console import Console

from mpidata.config import load_job
from mpidata.errors import JobFileError, LaunchError
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.launch.starting.local import run_local
from mpidata.launch.starting.named_run import NamedRun, changed_since
from mpidata.run.folder import RunFolder


def begin(path: Path) -> RunFolder:
    job = load_job(path)
    run, _, lock = prepare_run(job)
    os.close(lock)
    with closing(NamedRun(job, "nightly")) as named:
        named.note(run)
    return run


def test_changed_keys_of_the_job_file_are_named(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    run = begin(path)
    then = load_job(run.job)
    assert changed_since(load_job(path), run, then) == ""
    now = load_job(path, ["buffer.capacity=77", "parameters.space.left=[0, 1]", "checkpoint={every_s: 3}"])
    keys = "'parameters.space.left', 'buffer.capacity', 'checkpoint'"
    since = f"since {run.path} was started, which continues with its old values"
    fix = "Use another name to start a new run."
    assert changed_since(now, run, then) == f"{path} has changed in {keys} {since}. {fix}"
    fewer = ["buffer.capacity=20"]
    assert changed_since(load_job(path, fewer), run, load_job(run.job, fewer)) == ""  # the settings that it resumes


def test_named_run_refuses_fixed_settings_and_warns_of_file_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_job(tmp_path).rename(tmp_path / "as.yaml")
    run = begin(path)

    def again(*overrides: str) -> int:
        consoles = Console(width=1000), Console(stderr=True, width=1000)
        return run_local(str(path), overrides, *consoles, name="nightly")

    with pytest.raises(JobFileError, match=r"^as\.yaml: 'seed' cannot be changed when a run is resumed"):
        again("seed=5")
    run.summary.write_text('{"status": "complete"}')
    assert again() == 0
    assert capsys.readouterr().err == ""
    path.write_text(path.read_text() + "seed: 5\n")
    assert again() == 0
    said = capsys.readouterr()
    assert f"{run.path}, started as nightly, is complete." in said.out
    assert f"{path} has changed in 'seed' since {run.path} was started" in said.err


def test_pipe_in_place_of_the_note_is_refused(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path))
    note = tmp_path / "runs" / "job" / ".begun-night"
    note.parent.mkdir(parents=True)
    os.mkfifo(note)
    with pytest.raises(LaunchError, match=f"{note} is not a regular file. Remove it to start a new run."):
        NamedRun(job, "night")
