"""Ctrl-C ends the loops with KeyboardInterrupt, and the job with the scripts."""

import signal
import time

import pytest
from jobs import JobFolder, Result, python
from waiting import wait_until


def interrupt(folder: JobFolder, what: str, then: str, trainers: int = 1) -> Result:
    """Press Ctrl-C while the trainers train."""
    folder.variables = {"STEPS": "1000", "SLEEP_S": "0.005"}
    program = {"ranks": trainers, "program": python("trainers/stopping/interrupted.py", what, then)}
    if what == "stream":
        space = {"count": 50, "space": {"alpha": [0.0, 1.0]}}
        folder.job(trainers=program, solvers={"function": "functions.steps:simulate", "groups": 2}, parameters=space)
    else:
        folder.write_job({"trainers": program, "loaders": {"ranks": 1}})
    job, began = folder.start(), time.monotonic()
    wait_until(lambda: len(list(folder.path.glob("runs/job/1/trains-*"))) == trainers, 60)
    job.send_signal(signal.SIGINT)
    result = folder.finish(job, 60, began)
    folder.assert_nothing_left()
    assert result.status == 130, result.logs()
    assert result.summary["status"] == "stopped" and result.summary["reason"] == "Ctrl-C", result.summary
    assert "within 60 s. Press Ctrl-C again to end now." in result.output
    return result


@pytest.mark.parametrize("what", [pytest.param("stream", marks=pytest.mark.full), "loader"])
def test_a_script_may_save_its_model_after_ctrl_c(folder: JobFolder, what: str) -> None:
    result = interrupt(folder, what, "saves")
    assert result.run is not None and (result.run / "saved").exists(), result.logs()
    assert what == "loader" or "stopped: True" in result.log("trainer")


def test_uncaught_keyboard_interrupt_ends_scripts_without_a_traceback(folder: JobFolder) -> None:
    result = interrupt(folder, "stream", "ends", trainers=2)
    for trainer in range(2):
        log = result.log("trainer", trainer)
        assert "mpidata: Ctrl-C ended the loop of the script" in log and "Traceback" not in log, log
    assert [event for event in result.events() if event["event"] in ("error", "overdue")] == []
