"""Carried programs ask inference ranks through memory shared with their carriers."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import test_inference_leaving as leaving
from jobs import DRAIN, PROGRAMS, JobFolder, Result, config, python, ranks_that
from test_inference import DOUBLE, check_complete, events, inference_ranks, write_job
from waiting import wait_until

Build = Callable[..., Path]
Require = Callable[[str], str]
SIMULATIONS, STEPS = 4, 10


def write(folder: JobFolder, program: list[str], solvers: dict[str, Any] | None = None, **inference: object) -> None:
    folder.write(net=DOUBLE)
    folder.job(
        trainers=DRAIN,
        solvers={"groups": 1, "carried": {}, "program": program, **(solvers or {})},
        inference={"function": "net:answer", **inference},
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [3]}},
    )


def check(result: Result) -> None:
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == SIMULATIONS
    assert result.summary["samples"]["received"] == SIMULATIONS * STEPS


def test_c_program_can_keep_several_questions_open(folder: JobFolder, carried: Build) -> None:
    write(folder, [str(carried("asks"))], {"groups": 2}, ranks=2)
    check(folder.run())


@pytest.mark.full
def test_several_large_questions_are_answered(folder: JobFolder, carried: Build) -> None:
    """Questions take up to 48 MB, and several are open at once."""
    write(folder, [str(carried("asks")), "50"])
    folder.change_job(parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}})
    result = folder.run()
    assert result.status == 0 and result.summary["samples"]["received"] == STEPS, result.logs()


@pytest.mark.full
@pytest.mark.parametrize(("ranks", "carriers"), [(3, 1), (4, 2)])
def test_questions_of_only_some_ranks_are_answered(
    folder: JobFolder, carried: Build, require: Require, ranks: int, carriers: int
) -> None:
    program = [str(carried("asks", require("mpicc.mpich")))]
    write(folder, program, {"carried": {"ranks": ranks}, "ranks_per_group": carriers}, ranks=2, batch=1000)
    check(folder.run())


@pytest.mark.full
def test_fortran_program_gets_answers(folder: JobFolder, require: Require) -> None:
    source = PROGRAMS / "solvers/fortran/asks.F90"
    command = [require("gfortran"), "-DCARRIED", source, "-o", "asks", *config("--fcarried")]
    subprocess.run(command, cwd=folder.path, check=True)
    write(folder, ["./asks"])
    check(folder.run())


@pytest.mark.full
def test_python_program_gets_answers(folder: JobFolder) -> None:
    write_job(folder, solvers={"carried": {}}, ranks=2)
    check_complete(folder.run())


@pytest.mark.full
def test_spawned_inference_rank_answers_through_a_trainer(folder: JobFolder) -> None:
    write_job(folder, 0.05, solvers={"carried": {}}, ranks=1)
    process = folder.start()
    wait_until(lambda: victim(folder.path, "inference"), timeout_s=40, alive=process)
    wait_until(lambda: '"dispatch"' in events(folder), timeout_s=40, alive=process)
    inference_ranks(folder.path)[0].kill()
    result = folder.finish(process, 90, 0)
    folder.assert_nothing_left()
    check_complete(result)
    assert result.summary["inference"] == {"joined": 2, "lost": 1}


@pytest.mark.full
def test_questions_of_cancelled_simulations_are_answered(folder: JobFolder, carried: Build) -> None:
    trainer = python("trainers/cancels.py", "drawn", 3)
    leaving.write(folder, [str(carried("asks_and_leaves")), "cancelled"], trainer)
    folder.change_job(solvers={"groups": 1, "carried": {}, "program": [str(carried("asks_and_leaves")), "cancelled"]})
    result = folder.run()
    assert result.status == 0 and result.summary["simulations"]["cancelled"] == 4, result.logs()


@pytest.mark.full
def test_next_and_finalize_wait_for_answers(folder: JobFolder, carried: Build) -> None:
    leaving.write(folder, [], python("trainers/drain.py"))
    folder.change_job(solvers={"groups": 2, "carried": {}, "program": [str(carried("asks_and_leaves"))]})
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["failed"] == 2, result.summary


FULL = """
import os, sys, time
import numpy as np
import mpidata

taken = int(open("taken").read()) if os.path.exists("taken") else None
for simulation in mpidata.solver.simulations():
    for step in range(30):
        if step == taken:
            time.sleep(0.5)
            answer = mpidata.solver.infer({"x": np.ones((2, 3), np.float32)}, {"y": ((2, 3), "float32")})
            assert (answer["y"] == 2).all()
            open("answered", "w").close()
        began = time.monotonic()
        simulation.put(u=np.full(25000, step, np.float32))
        if time.monotonic() - began > 1.5 and taken is None:
            taken = step
            open("taken", "w").write(str(step))
        simulation.step(step)
"""
DRAWS_LATE = """
import os, time
import mpidata

stream = mpidata.MPIStreamDataset(batch_size=1)
if os.path.exists("taken"):
    while not os.path.exists("answered"):
        time.sleep(0.01)
else:
    time.sleep(4)
print("drawn", sum(1 for _ in stream))
"""


@pytest.mark.full
def test_answers_arrive_while_buffers_are_full(folder: JobFolder) -> None:
    """The carrier waits for room until the program has its answer; only then does the trainer draw.

    A first job finds out how many samples the program can put before that.
    """
    folder.write(net=DOUBLE, train=DRAWS_LATE, asks=FULL)
    folder.job(
        trainers={"program": ["python", "train.py"]},
        solvers={"groups": 1, "carried": {}, "program": ["python", "asks.py"], "in_flight": 1},
        inference={"function": "net:answer"},
        parameters={"count": 1, "space": {"alpha": [0.0, 1.0]}},
        buffer={"policy": "fifo", "capacity": 2},
        fields={"u": {"dtype": "float32", "shape": [25000]}},
    )
    for file in ("taken", "answered"):
        result = folder.run()
        assert result.status == 0 and "drawn 30" in result.log("trainer"), result.logs()
        assert (folder.path / file).exists()


def victim(folder: Path, what: str) -> psutil.Process | None:
    """Return the program, its carrier, or the first inference rank; None if it does not exist yet."""
    if what == "inference":
        return next(iter(inference_ranks(folder)), None)
    carriers = ranks_that(folder, lambda process: process.name() == "mpidata-carrier")
    if what == "carrier":
        return next(iter(carriers), None)
    below = [process for carrier in carriers for process in carrier.children(recursive=True)]
    return next((process for process in below if process.name().startswith("asks")), None)


def run_with_death(folder: JobFolder, program: Path, what: str, how: signal.Signals, ranks: int) -> None:
    """Run a job that ends in order, in which one of these, or nobody (""), dies while questions are open."""
    letters = folder.path / "letters"
    solvers = {"carried": {"ranks": ranks}, "spares": 1, "timeout_s": 3, "start_timeout_s": 6}
    write(folder, [str(program), "1", str(letters), "3"], solvers, ranks=1, spares=1, timeout_s=3)
    folder.write(net="import time\n" + DOUBLE.replace("    return", "    time.sleep(0.02)\n    return"))
    started, job = time.monotonic(), folder.start()
    wait_until(lambda: victim(folder.path, "program"), timeout_s=40, alive=job)
    time.sleep(1)
    if what:
        wait_until(lambda: victim(folder.path, what), timeout_s=40, alive=job).send_signal(how)
    time.sleep(1)
    letters.write_text("xxx")
    result = folder.finish(job, 90, started)
    folder.assert_nothing_left()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["complete"] == SIMULATIONS and result.summary["status"] == "complete"
    assert result.summary["inference"]["lost"] == (what == "inference"), result.logs()
    assert result.summary["lost_groups"] == (what == "carrier"), result.logs()


@pytest.mark.full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("what", ["inference", "program", "carrier"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_job_completes_after_a_death_with_open_questions(
    folder: JobFolder, carried: Build, require: Require, what: str, how: signal.Signals, ranks: int
) -> None:
    program = carried("asks", require("mpicc.mpich") if ranks > 1 else None)
    run_with_death(folder, program, what, how, ranks)
