"""Programs that are no ranks of the job: what they put comes as that of ranks does."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import PROGRAMS, JobFolder, Result, mpicc, ranks_of

STEPS, SIMULATIONS = 8, 12
Build = Callable[..., Path]


def write_job(folder: JobFolder, program: Path, *arguments: str, depth: int = 900, **more: object) -> None:
    solvers = {"groups": 2, "carried": {"ranks": 1}, "program": [str(program), str(STEPS), *arguments], **more}
    folder.job(
        **{
            "trainers": {"ranks": 1, "program": ["python", str(PROGRAMS / "check_pattern.py"), "1"]},
            "solvers": solvers,
            "parameters": {"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0], "beta": [5, 6]}},
            "fields": {
                "line": {"dtype": "float64", "shape": [37]},
                "plane": {"dtype": "float32", "shape": [13, 70]},
                "cube": {"dtype": "float32", "shape": [5, 4, depth]},
                "whole": {"dtype": "int64", "shape": [3]},
                "scalar": {"dtype": "float64", "shape": []},
            },
            "buffer": {"policy": "fifo", "capacity": 100},
        }
    )


def check(folder: JobFolder, result: Result) -> None:
    """Check that each sample came once; check_pattern.py has compared every element."""
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": SIMULATIONS, "complete": SIMULATIONS, "failed": 0}
    seen = json.loads((folder.path / "seen-0.json").read_text())["seen"]
    assert Counter(map(tuple, seen)) == Counter((s, step) for s in range(SIMULATIONS) for step in range(STEPS + s % 3))


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


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGSEGV, marks=pytest.mark.full)])
def test_a_program_that_dies_is_started_again(folder: JobFolder, carried: Build, how: signal.Signals) -> None:
    write_job(folder, carried("pattern"), "slow", "9", depth=9)
    started, job = time.monotonic(), folder.start()
    killed = 0
    while killed < 3 and time.monotonic() < started + 30:
        programs = [process for process in ranks_of(folder.path) if process.name().startswith("pattern")]
        if programs:
            os.kill(programs[0].pid, how)
            killed += 1
            time.sleep(0.3)
    assert killed == 3
    check(folder, folder.finish(job, 60, started))
    folder.assert_nothing_left()
