"""What was set aside stays so when the run is resumed, unless it is to be run again."""

import pytest
from jobs import BIN, DRAIN, JobFolder

ROD = """
import os
import mpidata
def simulate(alpha, simulation):
    if simulation == 1 and not os.path.exists("mended"):
        raise mpidata.GiveUp("diverged")
    if simulation == 3 and not os.path.exists("whole"):
        yield {}
    yield {"u": [[0.0] * 6] * 4}
"""


@pytest.mark.full
def test_a_resume(folder: JobFolder) -> None:
    folder.write(rod=ROD)
    folder.job(
        trainers=DRAIN,
        solvers={"function": "rod:simulate"},
        parameters={"count": 4, "space": {"alpha": [0.0, 1.0]}},
    )
    result = folder.run()
    assert result.status == 1 and "Field 'u' was not put" in result.summary["error"]
    resume = [str(BIN / "mpidata"), "run", "--resume", "runs/job/1"]
    result = folder.run(command=resume)
    assert result.status == 1 and "1 simulation that had been set aside will not be run again" in result.output
    assert [entry["simulation"] for entry in result.summary["set_aside"]] == [1]
    for name in ("mended", "whole"):
        (folder.path / name).touch()
    result = folder.run(command=[*resume, "--retry-set-aside"])
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["set_aside"] == []
