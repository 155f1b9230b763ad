"""After an early end that nothing reports, the simulation is run again, and no sample is lost."""

import contextlib
import os
import signal
import time

import psutil
import pytest
from jobs import DRAIN, JobFolder, python


@pytest.mark.parametrize(
    ("leave", "groups", "ranks", "carried"),
    [
        ("1", 1, 1, False),
        ("no mesh", 2, 2, False),
        ("0", 2, 1, True),
        *(
            pytest.param(leave, *of, marks=pytest.mark.full)
            for of, others in {
                (1, 1, False): ("0", "no mesh"), (2, 2, False): ("1", "0"), (2, 1, True): ("1", "no mesh")
            }.items()
            for leave in others
        ),
    ],
)  # fmt: skip
def test_python_program_that_ends_within_a_simulation_fails_the_try(
    folder: JobFolder, leave: str, groups: int, ranks: int, carried: bool
) -> None:
    how = {"carried": {"ranks": 1}} if carried else {"ranks_per_group": ranks}
    folder.job(
        trainers=DRAIN,
        solvers={"program": python("solvers/python/leaves.py", leave), "groups": groups, **how},
    )
    result = folder.run(timeout=90)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["samples"]["received"] == 4 * 10
    assert [entry["simulation"] for entry in result.summary["retries"]] == [1], result.summary


@pytest.mark.parametrize(
    ("when", "status"),
    [
        ("after", "complete"),
        *(pytest.param(*of, marks=pytest.mark.full) for of in (("close", "stopped"), ("within", "failed"))),
    ],
)
def test_os_exit_of_a_trainer_fails_the_job_only_within_the_loop(folder: JobFolder, when: str, status: str) -> None:
    program = python("trainers/stopping/exits_at_once.py", when)
    folder.job(trainers={"ranks": 2, "program": program}, solvers={"function": "functions.steps:simulate"})
    result = folder.run(timeout=60)
    assert result.summary["status"] == status and result.status == (status == "failed"), result.logs()


def test_spawned_group_killed_before_it_joins_is_spawned_again(folder: JobFolder) -> None:
    folder.job(
        trainers=DRAIN,
        solvers={"program": python("solvers/python/joins_late.py"), "groups": 1, "start": "spawn"},
    )
    job, began = folder.start(), time.monotonic()
    while not (found := [p for p in psutil.process_iter() if _is_spawned(p, str(folder.path))]):
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    (folder.path / "killed").touch()
    for process in [found[0], *found[0].children()]:
        with contextlib.suppress(ProcessLookupError):  # the process ends with its mpidata-rank
            os.kill(process.pid, signal.SIGKILL)
    result = folder.finish(job, 60, began)
    assert result.status == 0, result.logs()
    assert "killed with its mpidata-rank before it joined" in str(
        [event for event in result.events() if event["event"] == "spawn_failed"]
    )


def _is_spawned(process: psutil.Process, folder: str) -> bool:
    try:
        command = process.cmdline()
        return "--group" in command and folder in " ".join(command) and bool(process.children())
    except psutil.Error:
        return False
