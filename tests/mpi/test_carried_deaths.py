"""Deaths of a carried program, its launcher, its carrier and the carrier's mpidata-rank: each sample comes once."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from carried_job import check, write_job
from jobs import DRAIN, PROGRAMS, JobFolder, ranks_that, variables_of

Build = Callable[..., Path]
Require = Callable[[str], str]


def victim(folder: JobFolder, what: str) -> psutil.Process | None:
    """Return a process of the first group: its program, the launcher of that, the carrier, or the carrier's parent."""
    carriers = ranks_that(folder.path, lambda process: process.name() == "mpidata-carrier")
    carriers = [process for process in carriers if variables_of(process)["OMPI_COMM_WORLD_RANK"] == "2"]
    below = carriers[0].children(recursive=True) if carriers else []
    programs = [process for process in below if process.name().startswith("pattern")]
    if not programs:
        return None
    parents, launchers = [carriers[0].parent()], carriers[0].children()
    found = {"carrier": carriers, "mpidata-rank": parents, "program": programs, "launcher": launchers}
    return found[what][0] if found[what] else None


def strike(folder: JobFolder, what: str, how: signal.Signals, times: int) -> None:
    deadline = time.monotonic() + 30
    while times:
        assert time.monotonic() < deadline, f"no {what} to kill"
        try:
            if process := victim(folder, what):
                os.kill(process.pid, how)
                times -= 1
        except (psutil.Error, OSError):
            pass
        time.sleep(0.3)


KILL, STOP, SEGV = signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV


def full(*values: object) -> object:
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("what", "how", "times", "ranks"),
    [
        ("program", KILL, 2, 1),
        full("program", SEGV, 2, 1),
        full("program", STOP, 1, 1),
        full("program", KILL, 2, 3),
        full("program", STOP, 1, 3),
        full("launcher", KILL, 2, 3),
        full("launcher", STOP, 1, 3),
        full("carrier", KILL, 1, 3),
        full("carrier", STOP, 1, 3),
        full("mpidata-rank", KILL, 1, 3),
        ("mpidata-rank", STOP, 1, 1),
    ],
)
def test_killed_or_stopped_processes_lose_no_sample(
    folder: JobFolder, carried: Build, require: Require, what: str, how: signal.Signals, times: int, ranks: int
) -> None:
    program = carried("pattern", require("mpicc.mpich") if ranks > 1 else None)
    more = {"spares": 1, "timeout_s": 3, "start_timeout_s": 6, "carried": {"ranks": ranks}}
    write_job(folder, program, "slow", "9", depth=9, **more)
    started, job = time.monotonic(), folder.start()
    strike(folder, what, how, times)
    check(folder, folder.finish(job, 60, started))
    folder.assert_nothing_left()


@pytest.mark.parametrize("how", [full("exit3"), full("exit0"), full("segv"), full("abort")])
@pytest.mark.parametrize("ranks", [1, 3])
def test_program_that_crashes_or_exits_early_is_restarted(
    folder: JobFolder, carried: Build, require: Require, how: str, ranks: int
) -> None:
    program = carried("pattern", require("mpicc.mpich"))
    write_job(folder, program, how, "9", depth=9, carried={"ranks": ranks})
    result = folder.run()
    check(folder, result)
    assert (folder.path / "ended").exists()
    assert any("is started again" in log.read_text() for log in (result.run / "logs").iterdir())


@pytest.mark.parametrize("lifetime", ["pool", full("simulation")])
def test_program_stopped_by_sigstop_after_its_work_is_continued(
    folder: JobFolder, carried: Build, lifetime: str
) -> None:
    number = ["{simulation}"] if lifetime == "simulation" else []
    write_job(folder, carried("pattern"), "stops", "9", *number, depth=9, lifetime=lifetime)
    check(folder, folder.run())


def write_script(folder: JobFolder, **more: object) -> None:
    """Write a job whose program is a script that leaves a process behind and writes files."""
    (folder.path / "case").mkdir()
    shutil.copy(PROGRAMS / "solvers/leaves_process.sh", folder.path / "case")
    folder.job(
        trainers=DRAIN,
        solvers={
            "groups": 1,
            "spares": 1,
            "carried": {},
            "lifetime": "simulation",
            "program": ["sh", "leaves_process.sh"],
            "case": {"folder": "case"},
            "output": {"files": "u_*.npy"},
            **more,
        },
    )


def test_script_that_signals_its_process_group_ends_only_itself(folder: JobFolder) -> None:
    write_script(folder, retries=0, tolerate=0)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 4, "failed": 0}
    assert result.summary["samples"]["received"] == 40 and result.summary["lost_groups"] == 0
    folder.assert_nothing_left()


def left_behind(folder: JobFolder) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline() == ["sleep", "317"] and process.cwd().startswith(str(folder.path)):
                found.append(process)
    return found


@pytest.mark.full
def test_processes_left_by_a_lost_group_are_ended_by_the_next_group(folder: JobFolder) -> None:
    write_script(folder)
    started, job = time.monotonic(), folder.start()
    while not (left := left_behind(folder)):
        assert time.monotonic() - started < 30
        time.sleep(0.02)
    os.kill(next(process.pid for process in left[0].parents() if process.name() == "mpidata-rank"), KILL)
    while any(process.is_running() and process.status() != "zombie" for process in left):
        assert time.monotonic() - started < 60
        time.sleep(0.02)
    assert job.poll() is None, "it was left until the job had ended"
    result = folder.finish(job, 60, started)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == 4
    folder.assert_nothing_left()
