"""What a run folder keeps about its Slurm job, when a job without progress ends, and what Slurm reports of an end."""

import json
from pathlib import Path

import pytest

from mpidata.errors import LaunchError
from mpidata.launch.batch.slurm_job import SlurmJob
from mpidata.run.folder import RunFolder

VARIABLES = {"SLURM_JOB_ID": "41", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_CLUSTER_NAME": "deep"}
SAID = "JobId=41 JobName=job UserId=root(0) JobState={} Reason={} Dependency=(null) Requeue=1"


def starts(run: RunFolder, *checkpoints: int, number: str = "41") -> None:
    for requeued, checkpoint in enumerate(checkpoints):
        SlurmJob(number, requeued).note(run, checkpoint)


def test_run_folder_records_its_slurm_job(tmp_path: Path) -> None:
    job = SlurmJob.of({**VARIABLES, "SLURM_RESTART_COUNT": "2", "SLURM_ARRAY_JOB_ID": "40", "SLURM_ARRAY_TASK_ID": "7"})
    assert job == SlurmJob("41", 2, "n[1-4]", "deep", "40_7")
    assert SlurmJob.of(VARIABLES) == SlurmJob("41", 0, "n[1-4]", "deep") and SlurmJob.of({}) is None
    job.note(RunFolder(tmp_path), 3)
    (line,) = (tmp_path / "slurm.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert entry.pop("time") > 1e9
    assert entry == {
        "number": "41", "requeued": 2, "nodes": "n[1-4]", "cluster": "deep", "task": "40_7", "checkpoint": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "checkpoint", "ends"),
    [
        ((0, 0, 0), 0, True),
        ((0, 2, 2, 2), 2, True),
        ((0, 0, 0), 1, False),  # the last start has written a checkpoint
        ((0, 1, 2), 3, False),
        ((0, 0), 0, False),
        ((), 0, False),
    ],
)
def test_a_job_that_is_requeued_without_progress_ends(
    tmp_path: Path, before: tuple[int, ...], checkpoint: int, ends: bool
) -> None:
    run = RunFolder(tmp_path)
    starts(run, *before)
    starts(run, 0, 0, 0, number="40")  # another job
    job = SlurmJob("41", len(before))
    if not ends:
        job.check_progress(run, checkpoint)
        return
    since = "since checkpoint 2" if checkpoint else "at all"
    with pytest.raises(LaunchError, match=f"job 41 was requeued 3 times and has written no checkpoint {since}, so it"):
        job.check_progress(run, checkpoint)
    for requeued in (len(before) + 1, len(before) + 2, len(before) + 3):  # three more starts, if requested
        again = SlurmJob("41", requeued)
        again.check_progress(run, checkpoint)
        again.note(run, checkpoint)
    with pytest.raises(LaunchError):
        SlurmJob("41", len(before) + 4).check_progress(run, checkpoint)


def test_truncated_line_is_ignored(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    starts(run, 0, 0, 0)
    with open(tmp_path / "slurm.jsonl", "a") as file:
        file.write('{"time": 1, "numb')
    with pytest.raises(LaunchError):
        SlurmJob("41", 3).check_progress(run, 0)


@pytest.mark.parametrize(
    ("said", "ending"),
    [
        (SAID.format("RUNNING", "None"), None),
        (SAID.format("COMPLETING", "None"), "Slurm ended job 41 (cancelled, requeued or preempted)"),
        (SAID.format("COMPLETING", "TimeLimit"), "Slurm ended job 41 (TimeLimit)"),
        (SAID.format("NODE_FAIL", "None"), "Slurm ended job 41 (NODE_FAIL)"),
        (f"{SAID.format('RUNNING', 'None')}\n{SAID.format('COMPLETING', 'NodeDown')}", "Slurm ended job 41 (NodeDown)"),
        ("", None),
    ],
)
def test_end_of_a_job_is_read_from_scontrol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, ending: str | None
) -> None:
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n[ \"$*\" = 'show job --oneliner 41' ] && echo '{said}'\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert SlurmJob("41").is_ending() == ending
    monkeypatch.setenv("PATH", "/nowhere")
    assert SlurmJob("41").is_ending() is None
