"""A case copy that cannot be made gives an error with the reason, never an incomplete copy."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.native.build_flags import carrier_program
from mpidata.run.folder import RunFolder

JOB = """\
name: rod
trainers: {ranks: 1, program: [python, train.py]}
solvers: {groups: 1, start: spawn, lifetime: simulation, case: {folder: case, fill: [in.txt]}, program: [./heat2d]}
parameters: {count: 2, space: {alpha: [0.01, 0.1]}}
fields: {u: {shape: [4]}}
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "in.txt").write_text("alpha {{alpha}}\n" * 1000)
    (tmp_path / "case" / "mesh.bin").write_bytes(os.urandom(100_000))
    (tmp_path / "job.yaml").write_text(JOB)
    run, _, lock = prepare_run(load_job(tmp_path / "job.yaml"))
    os.close(lock)
    return run


def make_case(run: RunFolder, *before: str) -> subprocess.CompletedProcess[str]:
    values = ["simulation=0", "try=1", "alpha=0.5", "group=0", "ranks=1"]
    command = [*before, str(carrier_program()), "--make-case", str(run.path), "0", *values]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_case_is_copied_and_filled(run: RunFolder) -> None:
    done = make_case(run)
    assert done.returncode == 0, done.stderr
    (copy,) = [path for path in run.path.rglob("mesh.bin")] or [*run.path.parent.rglob("simulation-*/mesh.bin")]
    assert copy.read_bytes() == (run.path.parents[2] / "case" / "mesh.bin").read_bytes()
    assert (copy.parent / "in.txt").read_text() == "alpha 0.5\n" * 1000


@pytest.mark.parametrize("name", ["in.txt", "mesh.bin"])
def test_unreadable_file_fails_the_copy_of_the_case(
    run: RunFolder, tmp_path: Path, require: Callable[[str], str], name: str
) -> None:
    path = str(tmp_path / "case" / name)
    faults = [f"inject={call}:error=EIO:when=1+" for call in ("read", "pread64", "copy_file_range", "sendfile")]
    options = [word for fault in faults for word in ("-e", fault)]
    strace = [require("strace"), "-qq", "-o", str(tmp_path / "trace"), "-P", path, *options]
    done = make_case(run, *strace)
    assert done.returncode != 0, done.stderr
    assert "Cannot copy the case to" in done.stderr and "Input/output error" in done.stderr
