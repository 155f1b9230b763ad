"""Ctrl-C ends the loops of all ranks of all replicas, whether a stream or a loader brings the batches."""

import signal
import time

import pytest
from jobs import JobFolder, python
from waiting import wait_until


@pytest.mark.parametrize("what", ["stream", pytest.param("loader", marks=pytest.mark.full)])
def test_ctrl_c_ends_the_loops_of_mates(folder: JobFolder, what: str) -> None:
    folder.variables = {"STEPS": "1000", "SLEEP_S": "0.005"}
    program = python("trainers/stopping/interrupted.py", what, "ends")
    trainers = {"ranks": 4, "ranks_per_replica": 2, "program": program}
    if what == "stream":
        space = {"count": 50, "space": {"alpha": [0.0, 1.0]}}
        folder.job(trainers=trainers, solvers={"function": "functions.steps:simulate", "groups": 2}, parameters=space)
    else:
        folder.write_job({"trainers": trainers, "loaders": {"ranks": 1}})
    job, began = folder.start(), time.monotonic()
    wait_until(lambda: len(list(folder.path.glob("runs/job/1/trains-*"))) == 4, 100)
    job.send_signal(signal.SIGINT)
    result = folder.finish(job, 100, began)
    folder.assert_nothing_left()
    assert result.status == 130 and result.summary["reason"] == "Ctrl-C", result.logs()
    for role in ("trainer", "mate"):
        for replica in range(2):
            log = result.log(role, replica)
            assert "mpidata: Ctrl-C ended the loop of the script" in log and "Traceback" not in log, log
