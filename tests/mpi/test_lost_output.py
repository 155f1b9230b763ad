"""If what reads or keeps the output of `mpidata run` fails, the job continues and ends as usual."""

import shlex

import pytest
from jobs import JobFolder, python


@pytest.mark.parametrize(
    "where",
    ["2>&1 | head -1", ">/dev/full", *(pytest.param(w, marks=pytest.mark.full) for w in (">&-", ">/dev/full 2>&1"))],
)
def test_job_continues_if_its_output_cannot_be_written(folder: JobFolder, where: str) -> None:
    folder.variables = {"STEPS": "8"}
    folder.job(
        trainers={"program": python("trainers/print_batches.py")}, solvers={"function": "functions.steps:simulate"}
    )
    result = folder.run(command=["bash", "-o", "pipefail", "-c", f"{shlex.join(folder.command())} {where}"])
    assert "Traceback" not in result.output and "Exception" not in result.output, result.output
    assert (result.status, result.summary["status"]) == (0, "complete"), result.logs()
    assert "batch 8" in result.log("trainer"), result.logs()
