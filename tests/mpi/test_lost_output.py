"""What reads or keeps the output of `mpidata run` may fail: the job goes on, and ends as it would."""

import shlex

import pytest
from jobs import JobFolder

TRAIN = """
from numpy_stream import stream
for number, batch in enumerate(stream(4), start=1):
    print("batch", number, flush=True)
"""
SIMULATE = """
import numpy as np
def simulate(alpha):
    for step in range(8):
        yield {"u": np.zeros((4, 6), np.float32)}
"""


@pytest.mark.parametrize(
    "where",
    ["2>&1 | head -1", ">/dev/full", *(pytest.param(w, marks=pytest.mark.full) for w in (">&-", ">/dev/full 2>&1"))],
)
def test_the_job_goes_on(folder: JobFolder, where: str) -> None:
    folder.write(train=TRAIN, sim=SIMULATE)
    folder.job(solvers={"function": "sim:simulate"})
    result = folder.run(command=["bash", "-o", "pipefail", "-c", f"{shlex.join(folder.command())} {where}"])
    assert "Traceback" not in result.output and "Exception" not in result.output, result.output
    assert (result.status, result.summary["status"]) == (0, "complete"), result.logs()
    assert "batch 8" in result.log("trainer"), result.logs()
