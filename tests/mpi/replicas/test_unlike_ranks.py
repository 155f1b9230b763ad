"""Ranks of a replica make different calls: an error names both calls, or the job ends in order."""

import signal
import time

import numpy as np
import pytest
from jobs import JobFolder, Result, python
from waiting import wait_until


def write(folder: JobFolder, what: str, does: str, who: int, **keys: object) -> None:
    program = python("trainers/replicas/unlike.py", what, does, who)
    trainers = {"ranks": 2, "ranks_per_replica": 2, "program": program}
    if what == "stream":
        folder.variables |= {"STEPS": "100"}
        solvers = {"groups": 1, "function": "functions.steps:simulate"}
        parameters = {"count": 8, "space": {"alpha": [0.0, 1.0]}}
        folder.job(trainers=trainers, solvers=solvers, parameters=parameters, **keys)
    else:
        np.savez(folder.path / "part.npz", row=np.arange(300))
        folder.write_job({"trainers": trainers, "loaders": {"ranks": 1}, **keys})


def run(folder: JobFolder, what: str, does: str, who: int, **keys: object) -> Result:
    write(folder, what, does, who, **keys)
    return folder.run(timeout=60)


@pytest.mark.parametrize("what", ["stream", "small"])
def test_mate_whose_script_ends_early_does_not_block_checkpoints(folder: JobFolder, what: str) -> None:
    """The mate declines checkpoints that the first rank starts, also while it takes all further loader batches."""
    keys = {"checkpoint": {"every_s": 0.2}} if what == "small" else {}
    result = run(folder, what, "exit", 1, **keys)
    status = "stopped" if what == "stream" else "complete"
    assert result.status == 0 and result.summary["status"] == status, result.logs()
    assert "A checkpoint was abandoned" in result.log("trainer"), result.logs()


def test_unsaveable_state_of_the_first_rank_does_not_block_the_end_of_the_job(folder: JobFolder) -> None:
    """This holds although its mate has sent its own large state for the checkpoint."""
    result = run(folder, "small", "state", 0, checkpoint={"every_s": 0.2})
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "ValueError: cannot be saved" in result.log("trainer"), result.logs()


@pytest.mark.parametrize(
    ("what", "does", "who", "asks", "first"),
    [
        ("small", "exit", 0, "batch 11 of epoch 0 of DataLoader 0", "but the script of the first rank has ended"),
        ("large", "break", 0, "batch 11 of epoch 0 of DataLoader 0", "with a loop from batch 0 of epoch 1 of DataLoad"),
        ("small", "break", 0, "batch 11 of epoch 0 of DataLoader 0", "with a loop from batch 0 of epoch 1 of DataLoad"),
        ("large", "break", 1, "a loop from batch 0 of epoch 1 of DataLoader 0", "with batch 11 of epoch 0 of DataLoad"),
        ("stream", "size", 0, "MPIStreamDataset(batch_size=7,", "with MPIStreamDataset(batch_size=4,"),
        ("small", "size", 1, "DataLoader(batch_size=4,", "with DataLoader(batch_size=7,"),
        pytest.param("files", "size", 1, "(batch_size=4,", "with FileDataset(batch_size=7,", marks=pytest.mark.full),
    ],
)
def test_the_error_names_both_calls(folder: JobFolder, what: str, does: str, who: int, asks: str, first: str) -> None:
    result = run(folder, what, does, who)
    error = result.summary["error"]
    assert result.status == 1 and "Rank 1 of replica 0 asks for " in error, (error, result.logs())
    assert asks in error and first in error, (error, result.logs())


@pytest.mark.parametrize("what", ["stream", pytest.param("small", marks=pytest.mark.full)])
def test_first_rank_stays_at_most_a_few_batches_ahead(folder: JobFolder, what: str) -> None:
    result = run(folder, what, "slow", 1)
    assert result.status == 0, result.logs()
    (lead,) = result.marked("mate")
    assert int(lead.split()[1]) <= (20 if what == "stream" else 40), lead  # with loaders, up to 16 more have arrived


@pytest.mark.full
def test_the_first_rank_names_the_mate_that_waits_for_it(folder: JobFolder) -> None:
    """Each waits for the other: one in a collective of torch, one in a call of mpidata."""
    write(folder, "stream", "barrier", 0, checkpoint={"within_s": 5})
    job, began = folder.start(), time.monotonic()
    logs = folder.path / "runs" / "job" / "1" / "logs"
    told = "Meanwhile mate 1 waits in the next batch."
    wait_until(lambda: any(told in log.read_text() for log in logs.glob("rank-*-trainer-0.log")), 100)
    job.send_signal(signal.SIGTERM)
    folder.finish(job, 100, began)
