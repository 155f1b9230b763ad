"""Groups and loaders are spawned after a trainer has died, and while one dies."""

import contextlib
import shlex
import subprocess
import time
from collections.abc import Callable
from typing import Any

import exact_job
import psutil
import pytest
import yaml
from jobs import PROGRAMS, JobFolder, Result, mpicc, ranks_of
from killing import events_of
from stream_job import check, write_job
from waiting import wait_until

# One group, so that nothing continues until the next one has joined.
SOLVERS = {"groups": 1, "function": "functions.steps:simulate", "start": "spawn"}


def run_meanwhile(folder: JobFolder, meanwhile: Callable[[], object], timeout: float = 100) -> Result:
    process = folder.start()
    try:
        meanwhile()
    except AssertionError:
        process.kill()
        raise
    result = folder.finish(process, timeout, time.monotonic())
    folder.assert_nothing_left()
    return result


def seen(folder: JobFolder, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind so far."""
    return [event for event in events_of(folder.path) if event["event"] == kind]


def kill_spawned(folder: JobFolder, kind: str, number: int) -> None:
    """Kill the program of a spawned group or loader."""
    for process in ranks_of(folder.path):
        with contextlib.suppress(psutil.NoSuchProcess, AttributeError):  # it or its parent has just ended
            command = process.parent().cmdline()
            if process.name() != "mpidata-rank" and command[2:4] == [f"--{kind}", str(number)]:
                process.kill()
                return
    raise AssertionError(f"no {kind} {number}")


def test_group_is_spawned_after_a_trainer_death(folder: JobFolder) -> None:
    job = write_job(folder, {"1": "6 SIGKILL"}, trainers=2, pause_s=0.05, solvers=SOLVERS)

    def kill_after_death() -> None:
        wait_until(lambda: seen(folder, "trainer_lost"), 40)
        kill_spawned(folder, "group", 0)
        wait_until(lambda: len(seen(folder, "group_joined")) == 2, 40)

    result = run_meanwhile(folder, kill_after_death)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert {event["group"] for event in seen(folder, "dispatch")} == {0, 1}, result.logs()


@pytest.mark.full
def test_loader_is_spawned_after_a_trainer_death(folder: JobFolder) -> None:
    options = {"batch_size": 4, "epochs": 8, "shuffle": "rows", "drop_last": False, "kills": {"1": "9 SIGKILL"}}
    job = {"rows": [40, 33, 27], "trainers": 3, "loaders": 1, "options": {**options, "loader": 0}}
    exact_job.write_parts(folder, job["rows"])
    exact_job.write_job(folder, 3, 1, job["options"])
    written = yaml.safe_load((folder.path / "job.yaml").read_text())
    folder.write_job({**written, "loaders": {"ranks": 1, "start": "spawn"}})

    def kill_after_death() -> None:
        wait_until(lambda: seen(folder, "trainer_lost"), 40)
        kill_spawned(folder, "loader", 0)

    result = run_meanwhile(folder, kill_after_death)
    exact_job.check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert [event["loader"] for event in seen(folder, "loader_joined")] == [0, 1], result.logs()


@pytest.mark.full
def test_group_is_spawned_after_a_spare_joined(folder: JobFolder) -> None:
    job = write_job(folder, {"0": "6 SIGKILL"}, trainers=2, spares=1, joins=1, pause_s=0.05, solvers=SOLVERS)

    def kill_after_joining() -> None:
        wait_until(lambda: seen(folder, "trainer_joined"), 40)
        kill_spawned(folder, "group", 0)
        wait_until(lambda: len(seen(folder, "group_joined")) == 2, 40)

    result = run_meanwhile(folder, kill_after_joining)
    check(job, result)
    assert result.summary["joined_trainers"] == [2], result.logs()
    assert {event["group"] for event in seen(folder, "dispatch")} == {0, 1}, result.logs()


def dies_joining(folder: JobFolder, trainer: int, at: str) -> None:
    """Make a trainer die before the call, `create` or `merge` and its number, by which it joins the spawned ranks."""
    built, flags = folder.path / "dies_joining.so", ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([mpicc(), *flags, PROGRAMS / "preloads/dies_joining.c", "-o", built], check=True)
    job = yaml.safe_load((folder.path / "job.yaml").read_text())
    command = shlex.join(job["trainers"]["program"])
    preload = f"DIES_JOINING='{trainer + 1} {at}' LD_PRELOAD=$LD_PRELOAD:'{built}'"
    job["trainers"]["program"] = ["sh", "-c", f"{preload} exec {command}"]
    folder.write_job(job)


@pytest.mark.full
@pytest.mark.parametrize("at", ["create 1", "create 2"])
def test_job_survives_a_trainer_death_while_a_group_is_spawned(folder: JobFolder, at: str) -> None:
    job = write_job(folder, {}, trainers=3, solvers={**SOLVERS, "groups": 2})
    dies_joining(folder, 1, at)
    result = folder.run(timeout=60)
    check(job, result)
    assert result.summary["lost_trainers"] == [1], result.logs()
    assert [event["event"] for event in result.events()].count("spawn_failed") == 1, result.logs()


@pytest.mark.full
def test_job_ends_if_a_trainer_death_during_a_spawn_blocks_others_in_mpi(folder: JobFolder) -> None:
    write_job(folder, {}, trainers=3, solvers={**SOLVERS, "groups": 2})
    dies_joining(folder, 1, "merge 1")
    result = folder.run(timeout=60)
    assert result.status == 1 and result.summary["died"], result.logs()
    assert "Trainer 1 died while the spawned group" in result.output, result.output


# In the new hub, without trainer 0, trainer 1 enters, admits trainer 2 (create 3), and joins with it (create 4).
@pytest.mark.full
@pytest.mark.parametrize(("dying", "at"), [(1, "create 2"), (1, "create 4"), (2, "create 2"), (2, "create 3")])
def test_job_survives_a_second_trainer_death_while_a_group_is_spawned(folder: JobFolder, dying: int, at: str) -> None:
    job = write_job(folder, {"0": "6 SIGKILL"}, trainers=3, pause_s=0.05, solvers=SOLVERS)
    dies_joining(folder, dying, at)

    def kill_after_death() -> None:
        wait_until(lambda: seen(folder, "trainer_lost"), 40)
        kill_spawned(folder, "group", 0)

    result = run_meanwhile(folder, kill_after_death)
    check(job, result)
    assert sorted(result.summary["lost_trainers"]) == [0, dying], result.logs()
