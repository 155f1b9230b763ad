"""Without ULFM a solver's death ends the job: `--restarts 1` restarts it, and every sample is used exactly once."""

import time
from pathlib import Path

from heat2d_job import write_heat2d_job
from jobs import JobFolder, named, python, ranks_of
from killing import STEPS, check_exactly_once, wait_for_event

COUNT = 20


def test_job_without_ulfm_is_restarted_after_a_death(folder: JobFolder, built_heat2d: Path) -> None:
    program = python("trainers/census/census_resumed.py", "0.02")
    keys = {"checkpoint": {"every_s": 1.0}, "launch": {"fault_tolerance": False}}
    write_heat2d_job(folder, built_heat2d, COUNT, {"groups": 2}, program=program, **keys)
    started = time.monotonic()
    process = folder.start("--restarts", "1")
    wait_for_event(folder.path, "checkpoint")
    named(ranks_of(folder.path), "heat2d")[0].kill()
    result = folder.finish(process, timeout=100, started=started)
    folder.assert_nothing_left()
    assert result.status == 0 and result.summary["status"] == "complete", result.logs()
    assert "(restart 1 of 1)" in result.output and "killed by SIGKILL" in result.output, result.output
    assert result.summary["samples"]["received"] == COUNT * STEPS
    check_exactly_once(folder, result.run, COUNT)
