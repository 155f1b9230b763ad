"""Programs that are no ranks of the job: what they put comes as that of ranks does."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from carried_job import check, write_job
from jobs import JobFolder, mpicc

Build = Callable[..., Path]


# Samples of 80 KB are sent from the memory shared with the program, those of 5 KB share messages.
@pytest.mark.parametrize("depth", [900, pytest.param(9, marks=pytest.mark.full)])
def test_every_element_comes_from_a_program_without_mpi(folder: JobFolder, carried: Build, depth: int) -> None:
    program = carried("pattern")
    assert "libmpi.so" not in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    write_job(folder, program, "copy", str(depth), depth=depth)
    check(folder, folder.run())


OWN_MPIS = {"the job's": mpicc, "MPICH": lambda: "mpicc.mpich", "Open MPI 4": lambda: "mpicc.openmpi"}


@pytest.mark.parametrize("mpi", ["MPICH", *(pytest.param(m, marks=pytest.mark.full) for m in OWN_MPIS if m != "MPICH")])
def test_a_program_of_any_mpi_keeps_its_world(
    folder: JobFolder, carried: Build, require: Callable[[str], str], mpi: str
) -> None:
    program = carried("pattern", require(OWN_MPIS[mpi]()))
    write_job(folder, program, "copy", carried={"ranks": 3})
    check(folder, folder.run())


@pytest.mark.full
def test_a_program_for_each_simulation_by_a_command_of_the_user(
    folder: JobFolder, carried: Build, require: Callable[[str], str]
) -> None:
    program = carried("pattern", require("mpicc.mpich"))
    launcher = [require("mpirun.mpich"), "-n", "{ranks}", "-hosts", "{hosts}"]
    each = {"lifetime": "simulation", "carried": {"ranks": 2, "launcher": launcher}}
    write_job(folder, program, "copy", "900", "{simulation}", **each)
    check(folder, folder.run())
