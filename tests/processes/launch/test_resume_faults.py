"""`mpidata run --resume` is killed, or finds the disk full, at each call that changes something until mpirun starts."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launch_job import Run, write_job

from mpidata.launch.watching.processes import processes_of

CALLS = ("openat", "mkdir", "rename", "unlink", "write", "pwrite64", "ftruncate")


@pytest.fixture
def job(tmp_path: Path, shim: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    require("mpirun")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    run = Run(tmp_path, shim)
    yield run
    run.end()


def hits_a_read(log: str) -> bool:
    """Whether the fault was injected into a call that opens a file to read it: Python's own calls vary."""
    return any("O_RDONLY" in line for line in log.splitlines() if "(INJECTED)" in line)


def changes(log: str) -> Iterator[tuple[str, int]]:
    """Yield the calls that change something, until the launcher's log is opened: name, and count within the name."""
    count: dict[str, int] = {}
    for name, arguments in re.findall(r"^(\w+)\((.*)", log, re.MULTILINE):
        count[name] = count.get(name, 0) + 1
        if name != "openat" or re.search("O_WRONLY|O_RDWR|O_CREAT", arguments):
            yield name, count[name]
        if "launcher.log" in arguments:
            return


@pytest.mark.full
@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC"])
def test_a_resume_that_is_interrupted_can_be_resumed(job: Run, require: Callable[[str], str], fault: str) -> None:
    runs, kept, log = job.folder / "runs", job.folder / "kept", job.folder / "strace.log"
    write_job(job.folder, trainer="exit 3")
    assert job.again(str(job.folder / "job.yaml")).returncode == 1
    shutil.copytree(runs, kept)
    (job.folder / "trainer.sh").write_text((job.folder / "solver.sh").read_text())
    strace = [require("strace"), "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    assert job.again("--resume", str(job.run), under=strace).returncode == 0
    points = list(changes(log.read_text()))
    assert {"openat", "mkdir", "rename", "unlink", "write"} <= {name for name, _ in points} and len(points) > 15
    hit = set()
    for name, nth in points:
        if (fault, name) == ("error=ENOSPC", "unlink"):  # unlink never finds the disk full
            continue
        shutil.rmtree(runs)
        shutil.copytree(kept, runs)
        interrupted = job.again("--resume", str(job.run), under=[*strace, "-e", f"inject={name}:{fault}:when={nth}"])
        if hits_a_read(log.read_text()):
            continue
        hit.add(name)
        where = f"{name} {nth}: {log.read_text().splitlines()[-3:]} {interrupted}"
        assert "Traceback" not in interrupted.stdout + interrupted.stderr, where
        if fault == "signal=KILL":
            assert interrupted.returncode == -9, where
        if interrupted.returncode != 0:  # a resume can do without its printed lines and a folder in /dev/shm
            again = job.again("--resume", str(job.run))
            assert again.returncode == 0 and job.summary()["status"] == "complete", f"{where}\n{again}"
        # Python itself checks whether it can write into TMPDIR.
        assert not processes_of(job.run) and not list(job.temporary.glob("mpidata-*")), where
    assert {"openat", "mkdir", "rename", "write"} <= hit, "otherwise nothing was tried"
