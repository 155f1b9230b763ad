"""Mistakes of carried programs and of their jobs are named."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, PROGRAMS, JobFolder, Result, config, mpicc

Build = Callable[..., Path]
BOTH = ["sh", "-c", '"$@" & "$@"; wait', "sh"]  # two ranks, neither of which knows of the other


def run(folder: JobFolder, program: Path, *arguments: str, **solvers: object) -> Result:
    """Run a job with the program, without retries."""
    folder.job(
        trainers=DRAIN,
        solvers={"program": [str(program), *arguments], "retries": 0, "tolerate": 0, **solvers},
    )
    return folder.run(timeout=90)


@pytest.mark.parametrize(
    ("how", "solvers", "sentence"),
    [
        (
            "whole",
            {"carried": {"ranks": 2, "launcher": BOTH}},
            "2 ranks of the carried program have put the whole of field 'u'. Solver rank 2 (group 0, its rank 0), "
            "simulation 0. Let one of them do so, or each put its own part. If each of them is rank 0 of 1, they "
            "were not started by the mpirun of their MPI: give that mpirun as solvers.carried.launcher.",
        ),
        pytest.param(
            "closes",
            {"carried": {}},
            "This process has closed the connection to its carrier. Close no file descriptors",
            marks=pytest.mark.full,
        ),
        pytest.param(
            "few",
            {"carried": {}},
            "has not come with its message, as happens if the process has too many open files",
            marks=pytest.mark.full,
        ),
        (
            "none",
            {},
            "linked with libmpidata_carried, but the job starts it as one of its ranks. Write `carried: {ranks: 1}`",
        ),
    ],
)
def test_mistakes_of_carried_programs_are_reported(
    folder: JobFolder, carried: Build, how: str, solvers: dict[str, object], sentence: str
) -> None:
    result = run(folder, Path("env"), str(carried("mistaken")), how, **solvers)  # `env` hides what it is linked with
    assert result.status == 1
    assert sentence in " ".join(result.logs().split()), result.logs()


@pytest.fixture
def with_libmpidata(folder: JobFolder) -> Path:
    """Return the path of the same program, linked with the library for ranks of the job."""
    program = folder.path / "mistaken"
    command = [mpicc(), PROGRAMS / "solvers/mistaken.c", "-o", program, *config("--cflags", "--libs")]
    subprocess.run(command, check=True)
    return program


def test_program_linked_with_libmpidata_is_reported(folder: JobFolder, with_libmpidata: Path) -> None:
    result = run(folder, Path("env"), str(with_libmpidata), carried={})
    assert result.status == 1
    said = " ".join(result.logs().split())
    assert "the job carries this program (solvers.carried), which is linked with libmpidata." in said, result.logs()


def test_wrong_library_is_reported_before_the_start(folder: JobFolder, carried: Build, with_libmpidata: Path) -> None:
    result = run(folder, with_libmpidata, carried={})
    assert result.status == 2 and "which is linked with libmpidata, though with 'solvers.carried'" in result.output
    result = run(folder, carried("mistaken"))
    assert result.status == 2 and "is linked with libmpidata_carried, which is for programs that" in result.output


def test_program_still_running_after_finalize_is_ended(folder: JobFolder, carried: Build) -> None:
    result = run(folder, carried("mistaken"), "lingers", carried={}, start_timeout_s=7, timeout_s=5)
    assert result.status == 0 and result.seconds < 60
    log = " ".join(result.log("solver").split())
    assert "the job is done and waits until its program ends." in log, log
    assert "did not end within solvers.start_timeout_s after mpidata_finalize, and was ended." in log, log


def test_step_time_that_is_not_finite_fails_the_try(folder: JobFolder, carried: Build) -> None:
    result = run(folder, carried("mistaken"), "diverges", carried={}, tolerate=1)
    assert result.status == 0, result.logs()
    (failed,) = result.summary["set_aside"]
    assert failed["simulation"] == 0 and "made a step at a time that is not finite, and was ended" in failed["how"]
    assert result.summary["simulations"]["complete"] == 3 and result.summary["samples"]["received"] == 2 + 3 * 5
