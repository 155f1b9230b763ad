"""A start that cannot work is soon refused with an error and a nonzero status."""

import os
import shlex
import shutil
import subprocess
import time

import pytest
from jobs import BIN, DRAIN, JobFolder, environment, python

MPIRUN = [str(BIN / "mpirun"), "--oversubscribe", "--bind-to", "none"]


@pytest.fixture
def small(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    if os.getuid() == 0:
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    folder.variables = {"STEPS": "3"}
    folder.job(trainers=DRAIN, solvers={"function": "functions.steps:simulate"})
    return folder


def test_job_can_be_started_with_mpirun(small: JobFolder) -> None:
    result = small.run(command=[*MPIRUN, "-n", "3", str(BIN / "mpidata"), "run", "job.yaml"])
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == 12


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mpirun_with_a_wrong_number_of_ranks_is_refused(small: JobFolder, ranks: int) -> None:
    result = small.run(command=[*MPIRUN, "-n", str(ranks), str(BIN / "mpidata"), "run", "job.yaml"])
    assert result.status != 0 and result.seconds < 20
    assert "the job has 3" in " ".join(result.output.split()) and "-n 3" in result.output, result.output
    assert result.run is None and "Traceback" not in result.output


def test_mpirun_of_another_mpi_is_refused(small: JobFolder) -> None:
    """Open MPI's library does not recognize another MPI's launcher, so N worlds of size 1 start."""
    started = time.monotonic()
    launcher = python("launchers/worlds_of_one.py", 3)
    result = small.run(command=[*launcher, str(BIN / "mpidata"), "run", "job.yaml"], timeout=40)
    assert result.status != 0 and time.monotonic() - started < 20
    logs = result.logs()
    assert "MPI_COMM_WORLD has 1" in logs and "does not belong to the MPI of libmpidata" in logs
    assert "Traceback" not in logs


def test_solver_outside_a_job_prints_one_notice(folder: JobFolder, compiled, tmp_path) -> None:
    done = subprocess.run(
        [compiled("pattern"), "2"], env=environment(), capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("mpidata: started outside a job") == 1


def test_dry_run_prints_the_mpirun_command(small: JobFolder) -> None:
    result = small.run("--dry-run")
    assert result.status == 0 and result.run is None
    assert "mpirun" in result.output and "-n 3" in result.output, result.output
    words = shlex.split(result.output, comments=True)
    assert shutil.which(next(word for word in words if word.endswith("mpirun")))
