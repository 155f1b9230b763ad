"""A signal after the last batch, while the scripts run the code that follows their loops."""

import signal
import time

import pytest
from jobs import JobFolder, Result, python
from waiting import wait_until


def stop(folder: JobFolder, number: signal.Signals, what: str, then: str, trainers: int = 2) -> Result:
    """Send a signal to `mpidata run` when all trainers have trained."""
    program = {"ranks": trainers, "program": python("trainers/stopping/saves_late.py", what, then)}
    if what == "stream":
        solvers = {"function": "functions.steps:simulate"}
        folder.job(trainers=program, solvers=solvers, checkpoint={"within_s": 60 if then == "saves" else 4})
    else:
        folder.write_job({"trainers": program, "loaders": {"ranks": 1}})
    job, began = folder.start(), time.monotonic()
    wait_until(lambda: len(list(folder.path.glob("runs/job/1/trained-*"))) == trainers, 60)
    job.send_signal(number)
    result = folder.finish(job, 60, began)
    folder.assert_nothing_left()
    return result


@pytest.mark.parametrize(
    ("number", "what"),
    [
        pytest.param(signal.SIGTERM, "stream", marks=pytest.mark.full),
        (signal.SIGINT, "stream"),
        pytest.param(signal.SIGTERM, "loader", marks=pytest.mark.full),
    ],
)
def test_a_job_whose_scripts_end_in_time_is_complete(folder: JobFolder, number: signal.Signals, what: str) -> None:
    result = stop(folder, number, what, "saves")
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete" and result.summary["reason"] is None
    assert result.run is not None and len(list(result.run.glob("saved-*"))) == 2


def test_resume_trains_again_if_a_script_was_ended_before_it_finished(folder: JobFolder) -> None:
    result = stop(folder, signal.SIGTERM, "stream", "hangs", trainers=1)
    assert result.status == 75 and result.summary["status"] == "stopped", result.logs()
    assert "; trainer 0 had not ended in time, and was ended" in result.summary["reason"]
    assert result.run is not None and not list(result.run.glob("saved-*"))
    resumed = folder.resume(result.run)
    assert resumed.status == 0 and resumed.summary["status"] == "complete", resumed.logs()
    assert resumed.log("trainer").count("batches 10") == 2 and (result.run / "saved-0").exists()
