"""Solvers that are done sleep until the trainers are done."""

import time

from jobs import JobFolder, ranks_that, variables_of
from killing import events_of
from waiting import wait_until

TRAIN = """
import os, time
from numpy_stream import stream
for sample in stream():
    pass
while not os.path.exists("enough"):
    time.sleep(0.05)
"""


def test_finished_solvers_keep_no_core_busy(folder: JobFolder) -> None:
    """They would in MPI_Finalize, which returns when all ranks have called it."""
    folder.write(train=TRAIN)
    folder.job(solvers={"function": "functions.steps:simulate"})
    job, began = folder.start(), time.monotonic()
    wait_until(lambda: any(event["event"] == "group_left" for event in events_of(folder.path)), 60, alive=job)
    ranks = ranks_that(folder.path, lambda one: variables_of(one).get("OMPI_COMM_WORLD_RANK") == "2")
    (solver,) = [one for one in ranks if one.name() != "mpidata-rank"]
    time.sleep(0.5)  # time for the solver to fall asleep
    before = sum(solver.cpu_times()[:2])
    time.sleep(2.0)
    used = sum(solver.cpu_times()[:2]) - before
    (folder.path / "enough").touch()
    result = folder.finish(job, 30, began)
    assert result.status == 0, result.logs()
    assert used < 0.4, used
