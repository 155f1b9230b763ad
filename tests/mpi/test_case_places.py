"""Places of case copies: two jobs may name the same place, and nothing stays there, however a job ends."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, python


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder in memory, on another file system than the run folder."""
    path = Path(tempfile.mkdtemp(prefix="mpidata-test-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


def write(job: JobFolder, place: Path, shape: tuple[int, int] = (4, 6)) -> None:
    (job.path / "case").mkdir(parents=True)
    (job.path / "case" / "input.dat").write_text(
        "{{alpha}} {{simulation:d}} {{ranks}} {{simulation:04d}}|{{simulation:-3d}}|"
    )
    (job.path / "case" / "n.dat").write_text("{{n}}")
    job.job(
        trainers=DRAIN,
        solvers={
            "groups": 2,
            "carried": {},
            "lifetime": "simulation",
            "program": python("solvers/python/case_places.py", "{n}", job.path / "raised", *shape),
            "case": {"folder": "case", "fill": ["*.dat"], "in": str(place / "cases"), "keep": "failed"},
        },
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0], "n": {"integers": [2, 9]}}},
    )


def test_concurrent_jobs_do_not_share_copies(tmp_path: Path, place: Path) -> None:
    jobs = [JobFolder(tmp_path / name) for name in ("one", "other")]
    started = time.monotonic()
    for job in jobs:
        write(job, place)
    running = [job.start() for job in jobs]
    for job, process in zip(jobs, running, strict=True):
        result = job.finish(process, 60, started)
        assert result.status == 0, result.logs()
        assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
        assert result.run is not None
        kept = result.run / "failed" / "1-1"  # from one file system to another
        assert sorted(path.name for path in kept.iterdir()) == ["input.dat", "n.dat", "written"]
        assert kept.joinpath("input.dat").read_text().split()[1] == "1"
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "end", ["error", *(pytest.param(end, marks=pytest.mark.full) for end in ("interrupted", "killed"))]
)
def test_no_case_copy_is_left_after_a_job_fails_or_is_killed(folder: JobFolder, place: Path, end: str) -> None:
    write(folder, place, (6, 4) if end == "error" else (4, 6))
    started, job = time.monotonic(), folder.start()
    while not list(place.glob("cases/*/*/written")):
        assert time.monotonic() - started < 30
        time.sleep(0.02)
    if end == "interrupted":
        job.send_signal(signal.SIGINT)
    elif end == "killed":
        _kill_launcher(job)
    result = folder.finish(job, 60, started)
    assert result.status != 0
    deadline = time.monotonic() + 5
    while list(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(place.iterdir()) == []


def _kill_launcher(job: "subprocess.Popen[str]") -> None:
    import psutil

    launcher = next(
        child for child in psutil.Process(job.pid).children() if "prterun" in child.name() or "mpi" in child.name()
    )
    os.kill(launcher.pid, signal.SIGKILL)
