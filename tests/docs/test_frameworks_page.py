"""Each script of docs/frameworks.md trains in the README's job, with one and with two trainers."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import JobFolder, environment, sets
from pages import README, ROOT, files

# The other frameworks have further tests in tests/mpi/frameworks, tests/unit/datasets, or below.
FAST = {"train_fsdp2.py": 2, "train_tensor_parallel.py": 1, "train_one_draws.py": 1, "train_jax.py": 1}
FRAMEWORKS, SOLVER = ROOT / "docs" / "frameworks.md", ROOT / "docs" / "solver.md"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    """Return a folder with the README's files and a solver in Python."""
    for name, text in (files(README) | files(FRAMEWORKS)).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "rod.py").write_text(files(SOLVER)["rod.py"])
    job = (tmp_path / "job.yaml").read_text()
    (tmp_path / "job.yaml").write_text(job.replace("program: [./solver]", 'function: "rod:simulate"'))
    job_folder = JobFolder(tmp_path)
    yield job_folder
    job_folder.end()


@pytest.mark.parametrize(
    ("script", "trainers"),
    [
        pytest.param(script, trainers, marks=[pytest.mark.full] * (FAST.get(script) != trainers))
        for script in files(FRAMEWORKS)
        for trainers in (1, 2)
    ],
)
def test_a_script_trains(folder: JobFolder, script: str, trainers: int) -> None:
    shutil.copy(folder.path / script, folder.path / "train.py")
    changes = [f"trainers.ranks={trainers}", "solvers.groups=1", "parameters.count=8", "validation.count=1", "name=job"]
    result = folder.run(*sets(*changes), timeout=120)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert result.summary["samples"]["received"] == 800
    loss = result.summary["training"]["training_loss"]
    assert loss["last"] < loss["first"], loss


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.full)])
def test_plain_ddp_runs_with_and_without_a_job(folder: JobFolder, processes: int) -> None:
    shutil.copy(folder.path / "train_ddp.py", folder.path / "train.py")
    changes = ["trainers.ranks=1", "solvers.groups=1", "parameters.count=2", "name=job", "record={path: record}"]
    result = folder.run(*sets(*changes), timeout=120)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    (folder.path / "model.pt").unlink()
    command = [sys.executable, *(torchrun if processes > 1 else []), "train_ddp.py"]
    done = subprocess.run(command, cwd=folder.path, env=environment(), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and (folder.path / "model.pt").exists(), done.stderr
    assert done.stderr.count("is not part of a job") == 1, done.stderr
