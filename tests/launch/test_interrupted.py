"""If the preparation of a start is killed or finds the disk full, at any system call, it can be repeated."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mpidata.config import Job, load_job
from mpidata.errors import LaunchError
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.launch.starting.folder.resume import look_at, make_ready
from mpidata.launch.starting.named_run import NamedRun
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

JOB = """\
name: rod
trainers: {ranks: 2, program: [python, train.py]}
solvers: {groups: 2, program: [./heat2d]}
parameters: {count: 8, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""
# All calls that can change a folder. `?` below makes strace ignore the calls that it does not know on this machine.
CALLS = (
    *("openat", "write", "pwrite64", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat"),
    *("rmdir", "link", "linkat", "symlink", "symlinkat", "chmod", "fchmod", "fchmodat", "ftruncate", "truncate"),
    *("fsync", "fdatasync", "creat", "copy_file_range", "sendfile", "mknod", "mknodat"),
)
FAULTS = ("signal=KILL", "error=ENOSPC")
Act = Callable[[], object]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(JOB)
    return load_job(tmp_path / "job.yaml")


@pytest.fixture
def traced(require: Callable[[str], str], tmp_path: Path) -> Callable[..., tuple[int, str]]:
    strace, log = require("strace"), tmp_path / "strace.log"

    def run(act: Act, *options: str) -> tuple[int, str]:
        """Run `act` in a child under strace; return its status, 7 for a LaunchError, and its system calls."""
        wait, go = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.read(wait, 1)
                act()
                os._exit(0)
            except LaunchError:
                os._exit(7)
            finally:
                os._exit(1)
        log.write_text("")
        calls = ",".join(f"?{name}" for name in CALLS)
        command = [strace, "-o", log, "-e", f"trace={calls}", *options, "-p", str(child)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            said = tracer.stderr.readline()  # later than TracerPid: from now on, strace sees all calls
            assert "attached" in said, said
            os.write(go, b"x")
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            tracer.communicate(timeout=20)
        os.close(wait)
        os.close(go)
        return status, log.read_text()

    return run


def changes(log: str) -> Iterator[tuple[str, int]]:
    """Yield the calls that change something: the name, and its count so far."""
    count: dict[str, int] = {}
    for name, arguments in re.findall(r"^(\w+)\((.*)", log, re.MULTILINE):
        count[name] = count.get(name, 0) + 1
        if name != "openat" or re.search("O_WRONLY|O_RDWR|O_CREAT", arguments):
            yield name, count[name]


def interrupted(traced: Callable[..., tuple[int, str]], act: Act, reset: Act, fault: str) -> Iterator[str]:
    """Run `act`, interrupted at each call that changes something; yield after each interruption."""
    reset()
    act()  # loads all modules
    reset()
    status, log = traced(act)
    assert status == 0
    points = list(changes(log))
    assert {"openat", "write", "mkdir", "rename"} <= {name for name, _ in points}
    for name, n in points:
        reset()
        status, log = traced(act, "-e", f"inject={name}:{fault}:when={n}")
        last = log.splitlines()[-2:]
        assert status == (-9 if fault == "signal=KILL" else 7) or (name == "mkdir" and status == 0), last
        yield str(last)


def resume(run: RunFolder) -> None:
    lock = run.hold()
    make_ready(look_at(run.path, ["solvers.groups=1"]), "none")
    os.close(lock)


def begin(job: Job) -> RunFolder:
    with closing(NamedRun(job, "night")) as named:
        if named.run is None:
            run, _, lock = prepare_run(job)
            named.note(run)
            os.close(lock)
        else:
            run = named.run
            resume(run)
        return run


def contents(run: Path) -> dict[str, str | None]:
    return {str(p.relative_to(run)): p.read_text() if p.is_file() else None for p in run.rglob("*")}


@pytest.mark.parametrize("fault", FAULTS)
def test_interrupted_preparation_of_a_resume_can_be_repeated(
    tmp_path: Path, job: Job, traced: Callable[..., tuple[int, str]], fault: str
) -> None:
    run, _, lock = prepare_run(job)
    os.close(lock)
    run.summary.write_text(json.dumps({"status": "failed"}))
    (run.exits / "rank-0003").write_text("{}")
    for path in (run.stop, run.over, run.progress, run.events):
        path.write_text("old")
    kept = shutil.copytree(run.path, tmp_path / "kept")

    def reset() -> None:
        shutil.rmtree(run.path)
        shutil.copytree(kept, run.path)

    resume(run)
    expected = contents(run.path)
    assert Plan.read(run.plan).attempt == 2 and expected["exits-1/rank-0003"] == "{}" and "summary-1.json" in expected
    resume(run)
    counted = contents(run.path)
    for where in interrupted(traced, lambda: resume(run), reset, fault):
        assert contents(run.path).keys() >= {"job.yaml", "private/plan", "events.jsonl", "parameters.csv"}, where
        has_its_plan = Plan.read(run.plan).attempt == 2  # only the fsync is left to do
        resume(run)
        assert contents(run.path) == (counted if has_its_plan else expected), where


@pytest.mark.parametrize("fault", FAULTS)
def test_interrupted_start_of_a_run_can_be_repeated(
    tmp_path: Path, job: Job, traced: Callable[..., tuple[int, str]], fault: str
) -> None:
    (tmp_path / "runs").mkdir()
    for where in interrupted(traced, lambda: begin(job), lambda: shutil.rmtree(tmp_path / "runs"), fault):
        run = begin(job)
        assert begin(job) == run and Plan.read(run.plan).attempt >= 2, where
        assert {entry.name for entry in run.path.iterdir()} >= {
            "exits",
            "job.yaml",
            "logs",
            "parameters.csv",
            "private",
        }
