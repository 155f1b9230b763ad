"""Paths and names that no file can have, and folders that vanish, are refused with a sentence or skipped."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from launch_job import write_job

from mpidata.cli import main
from mpidata.errors import StreamError
from mpidata.record.dataset import RecordedDataset
from mpidata.run.runs import find_runs

LONG = "x" * 300
OUTPUT = "in its path has 300 bytes. Use at most 255."
TOO_LONG = f"--as: the name {LONG[:20]}... has 300 bytes. Use at most 248."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", LONG], f"{LONG} is not a folder."),
        (["watch", LONG, "--once"], f"{LONG} is not a run folder."),
        (["report", LONG], f"{LONG} is not a run folder: it has no job.yaml."),
        (["advise", LONG], f"{LONG} is not a run folder: it has no job.yaml."),
        (["try", "t.py", "--record", f"{LONG}/record"], "is not in a run folder, so its job file is not known."),
        *(([name, "job.yaml", "--set", f"output={LONG}"], OUTPUT) for name in ("check", "run", "submit", "doctor")),
        (["run", "job.yaml", "--as", LONG, "--dry-run"], TOO_LONG),
        (["run", "job.yaml", "--as", LONG], TOO_LONG),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_too_long_names_are_refused(
    tmp_path: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2 and sentence in done.output, done.exception
    assert not (tmp_path / "runs").exists()


def test_too_long_record_path_is_refused() -> None:
    with pytest.raises(StreamError, match=f"{LONG} is not a folder. Give the folder that `record.path`"):
        RecordedDataset(LONG)


def test_folder_that_vanishes_during_the_search_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gone", "rod/1/private"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "rod/1/private/plan").touch()
    (tmp_path / "loop").symlink_to("loop")
    scandir = os.scandir

    def vanish(path: Path) -> object:
        if Path(path).name == "gone":
            Path(path).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanish)
    assert [run.path for run in find_runs(tmp_path)] == [tmp_path / "rod/1"]
    assert not (tmp_path / "gone").exists()
