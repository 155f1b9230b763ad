"""MPI_Abort of a solver that has joined, its own or MPI's after a fatal error, ends its group, not the job."""

from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import DRAIN, JobFolder, python


@pytest.mark.parametrize("start", [pytest.param("split", marks=pytest.mark.full), "spawn"])
def test_abort_of_a_solver_loses_only_its_group(folder: JobFolder, compiled: Callable[[str], Path], start: str) -> None:
    solvers = {"program": [str(compiled("aborts"))], "groups": 2, "ranks_per_group": 2, "start": start}
    folder.job(trainers=DRAIN, solvers=solvers, parameters={"count": 8, "space": {"alpha": [0.0, 1.0]}})
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["received"] == 40 and result.summary["lost_groups"] == 2
    causes = {entry["simulation"]: (entry["cause"], entry["exit"]) for entry in result.summary["retries"]}
    assert causes.keys() == {0, 1} and causes[0] == ("abort", 4) and causes[1][0] == "abort"
    lost = [event for event in result.events() if event["event"] == "group_lost"]
    assert "called MPI_Abort with 4" in [event["how"] for event in lost]
    assert "An error occurred in MPI_" in (result.run / "logs" / "launcher.log").read_text()
    said = "".join(path.read_text() for path in (result.run / "logs").glob("*solver*"))
    assert "simulation 0 diverged\n" in said and "simulation 1 diverged\n" in said


def test_abort_of_a_python_solver_loses_only_its_group(folder: JobFolder) -> None:
    folder.job(trainers=DRAIN, solvers={"program": python("solvers/python/aborts.py"), "groups": 2})
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()
    assert result.summary["samples"]["received"] == 20 and result.summary["lost_groups"] == 1
    assert [(entry["cause"], entry["exit"]) for entry in result.summary["retries"]] == [("abort", 7)]


@pytest.mark.parametrize("start", ["split", pytest.param("spawn", marks=pytest.mark.full)])
def test_abort_before_joining_is_reported_as_the_cause(
    folder: JobFolder, compiled: Callable[[str], Path], start: str
) -> None:
    solvers = {"program": [str(compiled("aborts")), "early"], "start": start, "retries": 0}
    folder.job(trainers=DRAIN, solvers=solvers)
    result = folder.run(timeout=60)
    assert result.status == 1 and "MPI_Abort with 6" in result.summary["error"], result.summary["error"]
