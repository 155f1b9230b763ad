"""mpidata-rank starts only what this user alone could have planned."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_job import clean_environment, make_plan

from mpidata.errors import LaunchError
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan

OTHER = 65534


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder that everybody can reach and write."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@pytest.mark.parametrize("where", ["", "private", "private/plan"])
def test_plan_of_another_user_is_refused(shared: Path, shim: Path, where: str) -> None:
    plan = make_plan(shared, dict.fromkeys(("scheduler", "trainer", "solver"), ["touch", str(shared / "started")]))

    def start() -> str:
        variables = clean_environment(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="7")
        done = subprocess.run([shim, plan.run], env=variables, capture_output=True, text=True, timeout=20)
        return done.stderr

    path = plan.run / where
    os.chown(path, OTHER, OTHER)
    said = start()
    assert (
        " belongs to user 65534, not to user 0, so mpidata does not read it" in said
        and not (shared / "started").exists()
    )
    if where == "private/plan":
        with pytest.raises(LaunchError, match="belongs to"):
            Plan.read(path)
    with pytest.raises(LaunchError, match="belongs to"):
        RunFolder(plan.run).check()
    os.chown(path, 0, 0)
    path.chmod(path.stat().st_mode | 0o020)
    assert " can be written by others, so mpidata does not read it" in start() and not (shared / "started").exists()
    path.chmod(path.stat().st_mode & ~0o020)
    moved = path.rename(shared / "moved")
    path.symlink_to(moved)
    assert "Cannot read " in start() and not (shared / "started").exists()
    path.unlink()
    moved.rename(path)
    start()
    assert (shared / "started").exists()
