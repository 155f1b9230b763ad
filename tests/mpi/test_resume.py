"""A rank that the job needs is killed at some moment, then the run is resumed: every sample is used exactly once."""

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import resume_campaign
from heat2d_job import write_heat2d_job
from jobs import JobFolder, Result, python
from killing import STEPS, check_exactly_once, events_of, job_processes

COUNT = 40
VICTIMS = ("trainer", "scheduler", "mpirun")


def kill_at(folder: JobFolder, victim: str, moment: float, in_checkpoint: bool) -> Result:
    """Run the job and kill -9 the victim `moment` seconds after its start, or while a checkpoint is being written."""
    started = time.monotonic()
    process = folder.start()
    while not any(event["event"] == "start" for event in events_of(folder.path)):
        assert process.poll() is None and time.monotonic() < started + 60
        time.sleep(0.02)
    time.sleep(moment)
    checkpoints = folder.path / "runs" / "job" / "1" / "checkpoints"
    while in_checkpoint and not list(checkpoints.glob("*.new/*")) and process.poll() is None:
        time.sleep(0.001)
    found = job_processes(folder.path, victim, trainers=2)
    assert found, "the job was over before"
    killed = time.monotonic()
    found[-1].kill()
    result = folder.finish(process, timeout=60, started=started)
    folder.assert_nothing_left()
    assert time.monotonic() - killed < 15, "the others took too long to end"
    return result


def check_victim(folder: JobFolder, built: Path, victim: str, moment: float, in_checkpoint: bool = False) -> None:
    # 400 batches take 8 s or more, on any machine: the kill comes before the end.
    program = python("trainers/census/census_resumed.py", "0.02")
    checkpoint = {"every_s": 1.0, "keep": 2}
    buffer = {"policy": "fifo", "capacity": 500}
    write_heat2d_job(folder, built, COUNT, {"groups": 2}, program=program, checkpoint=checkpoint, buffer=buffer)
    first = kill_at(folder, victim, moment, in_checkpoint)
    assert first.status == 1, first.logs()
    assert first.summary["status"] == "failed" and "--resume" in first.summary["error"], first.summary["error"]
    second = folder.resume(folder.path / "runs" / "job" / "1", timeout=150)
    assert second.status == 0, second.logs()
    assert second.run == first.run and second.summary["status"] == "complete"
    assert second.summary["samples"]["received"] == COUNT * STEPS
    check_exactly_once(folder, second.run, COUNT)
    for losses in folder.read_notes("losses", 2):
        assert len(losses) == COUNT * STEPS // 2 // 5
        assert statistics.mean(losses[-50:]) < statistics.mean(losses[:50])


def test_resume_after_a_trainer_death_uses_every_sample_once(folder: JobFolder, built_heat2d: Path) -> None:
    check_victim(folder, built_heat2d, "trainer", moment=1.5)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("victim", VICTIMS)
def test_resume_after_a_death_at_any_moment_uses_every_sample_once(
    folder: JobFolder, built_heat2d: Path, victim: str, seed: int
) -> None:
    chosen = random.Random(f"{victim} {seed}")
    check_victim(folder, built_heat2d, victim, chosen.uniform(0.0, 4.0), in_checkpoint=seed % 3 == 0)


# The scheduler or a trainer dies, then `mpidata run` while it prepares the resume.
@pytest.mark.parametrize("seed", (1953, pytest.param(7871, marks=pytest.mark.full)))
def test_random_interruptions_and_resumes_receive_each_sample_once(
    folder: JobFolder, tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], str], seed: int
) -> None:
    require("strace")
    built = tmp_path_factory.mktemp("campaign")
    resume_campaign.build(built)
    print(resume_campaign.draw(seed))
    print(resume_campaign.run_draw(folder, built, seed))
