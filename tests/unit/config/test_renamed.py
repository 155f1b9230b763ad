"""Keys under their old names work, and each is reported once."""

from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.config.describe import find
from mpidata.config.job import Job
from mpidata.config.notes import RENAMED
from mpidata.errors import JobFileError

TEXT = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d], slots: 5}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
store:
  capacity: 50
keep: 3
"""
SAID = "is now called '{}'. Rename it: the next release removes the old name. ({})"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job file of a release in which a key, a section and a section's place had other names."""
    names = {"solvers.slots": "solvers.in_flight", "store": "buffer", "keep": "checkpoint.keep"}
    monkeypatch.setattr("mpidata.config.notes.RENAMED", names)
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(TEXT)
    return tmp_path / "job.yaml"


def test_old_names_work_and_are_reported_once(path: Path) -> None:
    job = load_job(path)
    assert job.in_flight == 5 and job.buffer.capacity == 50 and job.saving.keep == 3
    assert job.notes == (
        "job.yaml: 'solvers.slots' " + SAID.format("solvers.in_flight", "line 2"),
        "job.yaml: 'store' " + SAID.format("buffer", "line 5"),
        "job.yaml: 'keep' " + SAID.format("checkpoint.keep", "line 7"),
    )


def test_set_option_accepts_old_names(path: Path) -> None:
    path.write_text(TEXT.replace(", slots: 5", ", in_flight: 5").replace("store:", "buffer:").replace("keep: 3\n", ""))
    assert load_job(path).notes == ()
    job = load_job(path, ["store.capacity=70", "solvers.slots=6"])
    assert (job.buffer.capacity, job.in_flight) == (70, 6)
    assert job.notes == (
        "job.yaml: 'store' " + SAID.format("buffer", "--set store.capacity=70"),
        "job.yaml: 'solvers.slots' " + SAID.format("solvers.in_flight", "--set solvers.slots=6"),
    )


def test_keys_under_both_names_and_bad_values_are_refused(path: Path) -> None:
    path.write_text(TEXT.replace("slots: 5", "slots: 5, in_flight: 6").replace("capacity: 50", "capacity: 0"))
    with pytest.raises(JobFileError) as caught:
        load_job(path)
    lines = str(caught.value).splitlines()
    assert "job.yaml: 'solvers.slots' and 'solvers.in_flight' are the same key. Remove 'solvers.slots'" in lines[0]
    assert any("'buffer.capacity' is 0. It must be" in line and line.endswith("(line 6)") for line in lines)


def test_each_old_name_maps_to_an_existing_key() -> None:
    for old, new in RENAMED.items():
        assert find(Job, tuple(new.split(".")))[1] is not None, new
        assert find(Job, tuple(old.split(".")))[1] is None, old
