"""Jobs that Slurm, or a user through Slurm, ends behave and report as the page on clusters describes."""

import json
from pathlib import Path

import pytest
from batch import BatchFolder, summaries
from killing import STEPS, check_exactly_once
from waiting import wait_until

COUNT = 40
SLOW = {"pause": 0.03, "checkpoint": {"every_s": 2.0, "within_s": 20.0}, "buffer": {"policy": "fifo", "capacity": 500}}


def submitted(folder: BatchFolder, built: Path, template: str, time: str = "10", **keys: object) -> str:
    """Submit a job long enough to be interrupted, and wait for its start."""
    folder.heat2d(built, COUNT, **SLOW | keys)
    settings = (f"slurm={{time: {time!r}, signal_s: 60, nodes: 4}}", "trainers.per_node=1")
    job = folder.submit("--template", template, *(word for setting in settings for word in ("--set", setting)))
    folder.wait_for_start(job)
    return job


def wait_for_end(folder: BatchFolder, job: str) -> None:
    """Wait until a job that may be restarted has ended."""
    wait_until(lambda: folder.state(job).get("JobState") not in ("RUNNING", "COMPLETING"), 60, every_s=0.2)


def check_stopped(folder: BatchFolder, job: str, state: str, reason: str) -> None:
    """Check that the job has ended for good, without any fault."""
    result = folder.wait(job, timeout=60)
    told = folder.state(job)
    assert (told["JobState"], told["Restarts"], told["ExitCode"]) == (state, "0", "75:0"), result.logs()
    summary = result.summary
    assert summary["status"] == "stopped" and summary["reason"].startswith(reason), summary
    assert summary["error"] is None and summary["lost_groups"] == 0 and summary["retries"] == []
    for word in ("failed", "is lost", "was killed", "died", "Starting again"):
        assert word not in result.output, result.output


@pytest.mark.full
@pytest.mark.parametrize("template", ["homogeneous", "heterogeneous", "preemptible"])
def test_scancel_ends_a_job_for_good(folder: BatchFolder, built_heat2d: Path, template: str) -> None:
    job = submitted(folder, built_heat2d, template)
    folder.wait_for_checkpoint()
    assert folder.call("scancel", job).returncode == 0
    check_stopped(folder, job, "CANCELLED", f"Slurm ended job {job} (")


@pytest.mark.full
@pytest.mark.parametrize(("template", "signal"), [("homogeneous", "USR1"), ("preemptible", "TERM")])
def test_signalled_job_checkpoints_and_ends_without_requeueing(
    folder: BatchFolder, built_heat2d: Path, template: str, signal: str
) -> None:
    """The job ends with a checkpoint, and `scontrol requeue` then resumes the same run and appends to its output."""
    job = submitted(folder, built_heat2d, template)
    assert folder.call("scancel", "--batch", f"--signal={signal}", job).returncode == 0
    check_stopped(folder, job, "FAILED", f"SIG{signal}: checkpoint ")
    before = folder.output(job)
    assert folder.call("scontrol", "requeue", job).returncode == 0
    check_gone_on(folder, job, before)


@pytest.mark.full
def test_running_job_resumes_after_a_requeue_by_hand(folder: BatchFolder, built_heat2d: Path) -> None:
    job = submitted(folder, built_heat2d, "homogeneous")
    folder.wait_for_checkpoint()
    before = folder.output(job)
    assert folder.call("scontrol", "requeue", job).returncode == 0
    first, _ = check_gone_on(folder, job, before)
    assert first["status"] == "stopped" and first["reason"].startswith(f"Slurm ended job {job} (")
    assert first["lost_groups"] == 0 and first["retries"] == []


def check_gone_on(folder: BatchFolder, job: str, before: str) -> list[dict]:
    """Check that the requeued job has resumed its own run; return the summaries of both starts."""
    wait_until(lambda: len(list(folder.path.glob("runs/job/1/summary*.json"))) >= 2, 90)
    result = folder.wait(job, timeout=90)
    assert result.status == 0 and result.run is not None and result.run.name == "1", result.logs()
    assert result.output.startswith(before) and "Resuming" in result.output[len(before) :]
    assert result.summary["status"] == "complete" and result.summary["samples"]["received"] == COUNT * STEPS
    check_exactly_once(folder, result.run, COUNT)
    starts = [json.loads(line) for line in (result.run / "slurm.jsonl").read_text().splitlines()]
    assert [(start["number"], start["requeued"]) for start in starts] == [(job, 0), (job, 1)]
    assert starts[0]["checkpoint"] == 0 < starts[1]["checkpoint"]
    return summaries(result.run)


@pytest.mark.full
@pytest.mark.timeout(400)
def test_job_checkpoints_before_the_time_limit(folder: BatchFolder, built_heat2d: Path) -> None:
    """A checkpoint is written before the time limit, and the summary names Slurm's signal."""
    job = submitted(folder, built_heat2d, "homogeneous", "1:30", pause=1.0)
    wait_for_end(folder, job)
    check_stopped(folder, job, "FAILED", "SIGUSR1: checkpoint ")


@pytest.mark.full
@pytest.mark.timeout(400)
def test_requeued_job_without_checkpoints_ends(folder: BatchFolder, built_heat2d: Path) -> None:
    job = submitted(folder, built_heat2d, "preemptible", checkpoint={"every_s": 3600.0, "within_s": 20.0})
    for start in range(1, 4):
        folder.wait_for_start(job, start)
        assert folder.call("scontrol", "requeue", job).returncode == 0
    result = folder.wait(job, timeout=120)
    assert folder.state(job)["JobState"] == "FAILED" and folder.state(job)["Restarts"] == "3"
    assert f"Slurm job {job} was requeued 3 times and has written no checkpoint at all, so it ends" in result.output
