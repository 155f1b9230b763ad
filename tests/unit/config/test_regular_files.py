"""Only regular files are read as a job file or a table: a pipe would block, a device has no end."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.errors import JobFileError

TEXT = """\
trainers: {program: [python, train.py]}
solvers: {program: [./heat2d]}
parameters: {sampler: file, path: %s}
fields: {u: {shape: [4]}}
"""


@pytest.fixture(autouse=True)
def ending() -> Iterator[None]:
    """Stop a test that reads forever before it fills the memory."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, 3)  # of CPU time: the machine may be busy
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture(params=["pipe", "/dev/zero", "folder"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    return path


def test_table_that_is_not_a_regular_file_is_refused(tmp_path: Path, other: Path) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(TEXT % other)
    with pytest.raises(
        JobFileError,
        match=f"'parameters.path': {other}: cannot read {other}: (Is a directory|it is not a regular file)",
    ):
        load_job(tmp_path / "job.yaml")


def test_job_file_that_is_not_a_regular_file_is_refused(other: Path) -> None:
    with pytest.raises(
        JobFileError,
        match=f"cannot read {other}: (Is a directory|it is not a regular file). Give the path of a job file.",
    ):
        load_job(other)


def test_oversized_job_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(JobFileError, match=f"cannot read {path}: it has more than 16777216 bytes."):
        load_job(path)
