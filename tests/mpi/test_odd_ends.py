"""Solvers that end or fork in unusual ways do not harm the job."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import JobFolder, Result, python


def run(folder: JobFolder, **solvers: object) -> Result:
    folder.job(
        trainers={"program": python("trainers/drain.py", 4)},
        solvers={"groups": 2, **solvers},
        fields={"u": {"dtype": "float64", "shape": [4, 6]}},
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo"},
    )
    result = folder.run(timeout=60)
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "batches 30" in result.log("trainer") and result.summary["lost_groups"] == 0
    assert not result.summary["retries"], result.summary
    return result


def test_forked_children_of_a_function_do_not_affect_the_job(folder: JobFolder) -> None:
    result = run(folder, function="functions.failing.forks:simulate")
    logs = result.log("solver", 0) + result.log("solver", 1)
    assert (
        "ValueError: in the child" in logs and logs.count("mpidata: This is a forked process, which has no part") == 1
    )


@pytest.mark.parametrize("how", ["no_finalize", pytest.param("fork", marks=pytest.mark.full)])
def test_c_solver_that_forks_or_omits_mpi_finalize_completes(
    folder: JobFolder, compiled: Callable[[str], Path], how: str
) -> None:
    result = run(folder, program=[str(compiled("odd_ends")), how])
    said = "ended without MPI_Finalize, so all others wait in theirs" in result.log("solver", 0)
    assert said == (how == "no_finalize")
