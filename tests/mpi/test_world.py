"""A solver that uses MPI_COMM_WORLD as its group's communicator is named."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from jobs import DRAIN, JobFolder, python


def test_call_on_comm_world_before_joining_fails_the_job(
    folder: JobFolder, compiled: Callable[[str], Path], require: Callable[[str], str]
) -> None:
    require("gdb")
    solvers = {"program": [str(compiled("world")), "before"], "groups": 2}
    folder.job(trainers={"program": python("trainers/only_joins.py")}, solvers=solvers, launch={"join_timeout_s": 12})
    result = folder.run(timeout=60)
    assert result.status == 1
    said = result.summary["error"]
    assert "(a solver of group" in said and "had not called mpidata_init 12 s after its start" in said
    assert "MPI_COMM_WORLD" in said and "'start: spawn'" in said and "Starting again" not in result.output
    assert re.search(r": it [a-z ,]+ \(state [RS](, in \w+)?\); its stack is in ", said), said
    (record,) = [r for r in map(json.loads, (p.read_text() for p in result.run.glob("exits/rank-*"))) if r.get("late")]
    assert record["error"] == said and not record["joined"] and not record["told"]
    log = (result.run / "logs" / f"rank-{record['rank']:04d}-solver-{record['group']}-0.log").read_text()
    assert "MPI_Barrier" in log and " wait_for_the_world (" in log


def test_call_on_comm_world_after_the_last_simulation_is_reported(
    folder: JobFolder, compiled: Callable[[str], Path]
) -> None:
    limits = {"timeout_s": 2, "start_timeout_s": 2}
    solvers = {"program": [str(compiled("world")), "end"], "groups": 2, **limits}
    folder.job(trainers=DRAIN, solvers=solvers)
    result = folder.run(timeout=60)
    assert result.status == 0, result.logs()  # all samples are there
    assert result.summary["samples"]["received"] == 12 and result.summary["lost_groups"] == 2
    (said,) = [line for line in result.output.splitlines() if "first loss" in line]
    assert re.search(r"was silent for \d+ s, longer than solvers.timeout_s allows", said), said
    assert "a call on MPI_COMM_WORLD" in said
