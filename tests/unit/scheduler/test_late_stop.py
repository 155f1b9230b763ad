"""A stop from outside after the last batch: a job that was not cut short is complete."""

from collections.abc import Callable
from typing import Any

import pytest

from mpidata.loading.figures import LEFT_EARLY
from mpidata.native import constants
from mpidata.native.event import CheckpointWritten, Goodbye, RecordStopped, Report, Status, Stop

MakeJob = Callable[..., Any]
ASKS = {"SIGTERM": "SIGTERM", "Ctrl-C": "SIGINT without-checkpoint", "Ctrl-C with checkpoint": "SIGINT"}


def stream(make_job: MakeJob, asks: str = "SIGTERM") -> Any:
    """Return a job of two trainers that is stopped when its stream is over; the test decides when they leave."""
    job = make_job(trainers=2, checkpoint_within_s=20.0)

    def end_of_stream() -> bool:
        (job.plan.run / "stop").write_text(asks)
        return False

    def checkpoint(number: int) -> None:
        for trainer in range(2):
            over = {"failed": constants.LOOP_OVER, "text": "the training loop is over"}
            job.event(CheckpointWritten, trainer, number=number, **over)

    job.before |= {"end_of_stream": end_of_stream, "checkpoint": checkpoint, "stop": lambda: False}
    return job


def leave(job: Any, trainer: int, after: float, all_drawn: bool = True) -> None:
    """Let a trainer learn of the end of its stream, and leave some seconds later."""
    job.event(Status, trainer, after=after, ended=True, all_drawn=all_drawn)
    job.event(Goodbye, trainer, after=after + 5.0)
    job.event(Status, trainer, after=after + 5.2, ended=True, all_drawn=all_drawn)


@pytest.mark.parametrize("asks", ASKS.values(), ids=ASKS)
def test_job_trained_to_the_end_is_complete_despite_a_stop(make_job: MakeJob, asks: str) -> None:
    job = stream(make_job, asks)
    leave(job, 0, after=0.1)
    leave(job, 1, after=9.0)  # it has trained on its last batch meanwhile
    assert job.run() == 0 and job.now > 1014
    assert job.summary["status"] == "complete"
    assert job.summary["reason"] is None and job.summary["error"] is None


def test_job_is_stopped_if_a_trainer_has_not_drawn_all_samples(make_job: MakeJob) -> None:
    job = stream(make_job)
    leave(job, 0, after=0.1)
    leave(job, 1, after=0.1, all_drawn=False)
    assert job.run() == 0
    assert job.summary["status"] == "stopped"
    assert job.summary["reason"] == "SIGTERM: no checkpoint was written: the training loop is over"


def test_job_is_stopped_if_a_script_does_not_end_in_time(make_job: MakeJob) -> None:
    job = stream(make_job)
    leave(job, 0, after=0.1)
    job.event(Status, 1, after=0.1, ended=True, all_drawn=True)
    assert job.run() == 1000
    assert job.summary["status"] == "stopped"
    assert "; trainer 1 had not ended in time, and was ended" in job.summary["reason"]


def test_job_is_stopped_if_a_script_fails_after_the_stop(make_job: MakeJob) -> None:
    job = stream(make_job)
    leave(job, 0, after=0.1)
    leave(job, 1, after=0.1)
    job.event(Stop, 1, after=5.0, failed=1, text="OSError: no space for the model")
    job.run()
    assert job.summary["status"] == "stopped" and job.summary["reason"].startswith("SIGTERM")


def test_incomplete_record_fails_the_job_despite_a_stop(make_job: MakeJob) -> None:
    job = stream(make_job)
    for trainer in range(2):
        leave(job, trainer, after=0.1)
    job.event(RecordStopped, 0, text="The disk is full.")
    assert job.run() == 0
    assert job.summary["status"] == "failed" and job.summary["error"] == "The disk is full."


@pytest.mark.parametrize("in_epoch", [False, True])
def test_job_without_a_stream_is_complete_only_if_scripts_leave_between_epochs(
    make_job: MakeJob, in_epoch: bool
) -> None:
    job = make_job(trainers=2, groups=0, simulations=0, loaders=1, checkpoint_within_s=20.0)
    (job.plan.run / "stop").write_text("SIGINT without-checkpoint")

    def stop() -> bool:
        if in_epoch:
            job.event(Report, 1, values=((LEFT_EARLY, 0, 21.0),))
        for trainer in range(2):
            job.event(Goodbye, trainer, after=1.0)
            job.event(Status, trainer, after=1.2)
        return False

    job.before["stop"] = stop
    assert job.run() == 0
    assert job.summary["status"] == ("stopped" if in_epoch else "complete")
