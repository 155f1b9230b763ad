"""Simulations that the training script cancels end, whatever runs them, and nothing else changes."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs import PROGRAMS, JobFolder, Result, config, mpicc, python

Build = Callable[..., Path]
CONSTANT = {"dtype": "float32", "shape": [5], "per": "simulation"}
DRAWN = 6  # samples of a simulation after which it is cancelled


def write(folder: JobFolder, *how: object, count: int = 4, trainers: int = 1, **keys: Any) -> None:
    folder.job(
        **{
            "trainers": {"ranks": trainers, "program": python("trainers/cancels.py", *(how or ("drawn", DRAWN)))},
            "parameters": {"count": count, "space": {"alpha": [0.0, 1.0]}},
            "buffer": {"policy": "fifo", "capacity": 8},
        }
        | keys
    )


def told(result: Result, trainer: int = 0) -> dict[str, Any]:
    return dict(json.loads(result.marked(index=trainer)[0]))


def check(folder: JobFolder, result: Result, count: int = 4, ranks: int = 1, at_least: int = DRAWN) -> dict[str, Any]:
    """All simulations were cancelled, each once and at one step of all ranks, and earlier samples were drawn once."""
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    assert result.summary["simulations"] == {"requested": count, "complete": 0, "failed": 0, "cancelled": count}
    assert result.summary["retries"] == [] and result.summary["lost_groups"] == 0
    assert result.summary["cancelled"] == list(range(count))
    said = told(result)
    assert sorted(said["taken"]) == list(range(count)) and said["again"] == []
    assert max(Counter(map(tuple, said["drawn"])).values(), default=1) == 1
    for simulation in range(count):
        ended = [int(path.read_text()) for path in folder.path.glob(f"ended-{simulation}-*")]
        assert len(ended) == ranks and len(set(ended)) == 1, (simulation, ended)
        of = [step for one, step in said["drawn"] if one == simulation]
        assert len(of) >= at_least and max(of, default=-1) < ended[0], (simulation, of, ended)
    return said


def test_all_ranks_of_a_group_end_at_the_same_step(folder: JobFolder) -> None:
    solvers = {"groups": 2, "ranks_per_group": 2, "function": "functions.endless:by_rows"}
    write(folder, solvers=solvers)
    check(folder, folder.run(), ranks=2)


@pytest.mark.parametrize("function", ["whole", pytest.param("by_rows", marks=pytest.mark.full)])
def test_cancel_releases_a_put_that_waits_for_room(folder: JobFolder, function: str) -> None:
    ranks = 2 if function == "by_rows" else 1
    solvers = {"groups": 2, "ranks_per_group": ranks, "function": f"functions.endless:{function}", "in_flight": 2}
    write(folder, "blocked", count=2, solvers=solvers, buffer={"policy": "fifo", "capacity": 4})
    said = check(folder, folder.run(), count=2, ranks=ranks, at_least=0)
    assert len(said["drawn"]) >= 4, "what had come stays"


@pytest.mark.full
@pytest.mark.parametrize("trainers", [1, 2])
def test_cancel_releases_puts_of_large_samples(folder: JobFolder, trainers: int) -> None:
    folder.write(
        large="""
import numpy as np
from pathlib import Path
def simulate(alpha, simulation):
    step = 0
    try:
        while True:
            yield {"u": np.full((1000, 100), step, np.float32)}
            step += 1
    except GeneratorExit:
        Path(f"ended-{simulation}-0").write_text(str(step))
        raise
"""
    )
    fields = {"u": {"dtype": "float32", "shape": [1000, 100]}}
    solvers = {"groups": 2, "function": "large:simulate", "in_flight": 2}
    buffer = {"policy": "firo", "capacity": 4, "watermark": 1}
    write(folder, "blocked", count=2, trainers=trainers, fields=fields, buffer=buffer, solvers=solvers)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["cancelled"] == 2


@pytest.mark.full
def test_cancelled_waiting_simulations_never_run_but_validation_ones_do(folder: JobFolder) -> None:
    solvers = {"function": "functions.steps:simulate"}
    write(folder, "first", 2, 3, 4, 5, 99, count=5, solvers=solvers, validation={"count": 1})
    result = folder.run()
    assert result.status == 0, result.logs()
    said = told(result)
    assert said["taken"] == [2, 3, 4] and said["again"] == []
    assert result.summary["simulations"] == {"requested": 6, "complete": 3, "failed": 0, "cancelled": 3}
    assert {event["simulation"] for event in result.events() if event["event"] == "dispatch"} == {0, 1, 5}


@pytest.mark.full
@pytest.mark.parametrize("more", [{"lifetime": "simulation"}, {}])
def test_simulations_of_spawned_groups_are_cancelled(folder: JobFolder, more: dict[str, str]) -> None:
    solvers = {"groups": 2, "ranks_per_group": 2, "start": "spawn", "function": "functions.endless:by_rows"}
    write(folder, solvers={**solvers, **more})
    check(folder, folder.run(timeout=100), ranks=2)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("argument", ["", "fail"])
def test_simulations_of_a_c_program_are_cancelled(folder: JobFolder, ranks: int, argument: str) -> None:
    command = [mpicc(), str(PROGRAMS / "solvers/endless.c"), "-o", "endless", *config("--cflags", "--libs")]
    subprocess.run(command, cwd=folder.path, check=True)
    program = [str(folder.path / "endless"), *([argument] if argument else [])]
    write(folder, solvers={"groups": 2, "ranks_per_group": ranks, "program": program})
    check(folder, folder.run(), ranks=ranks)


@pytest.mark.full
@pytest.mark.parametrize("argument", ["", "fail"])
def test_simulations_of_a_carried_program_are_cancelled(folder: JobFolder, carried: Build, argument: str) -> None:
    program = [str(carried("endless")), *([argument] if argument else [])]
    write(folder, solvers={"groups": 2, "carried": {"ranks": 1}, "program": program})
    check(folder, folder.run())


@pytest.mark.full
@pytest.mark.parametrize(("ranks", "carriers"), [(2, 1), (4, 2)])
def test_simulations_of_a_carried_program_with_several_ranks_are_cancelled(
    folder: JobFolder, carried: Build, require: Callable[[str], str], ranks: int, carriers: int
) -> None:
    program = carried("endless", require("mpicc.mpich"))
    keys = {"groups": 1, "carried": {"ranks": ranks}, "ranks_per_group": carriers, "program": [str(program)]}
    write(folder, solvers=keys)
    check(folder, folder.run(), ranks=ranks)


@pytest.mark.full
def test_simulations_of_a_fortran_program_are_cancelled(folder: JobFolder, require: Callable[[str], str]) -> None:
    source = PROGRAMS / "solvers/fortran/endless.f90"
    subprocess.run([require("gfortran"), source, "-o", "endless", *config("--fcarried")], cwd=folder.path, check=True)
    write(folder, solvers={"groups": 1, "carried": {"ranks": 1}, "program": [str(folder.path / "endless")]})
    check(folder, folder.run())


@pytest.mark.full
def test_cancel_ends_a_program_that_only_writes_files(folder: JobFolder) -> None:
    solvers = {
        "groups": 2, "carried": {}, "lifetime": "simulation", "program": python("outputs/ignores_sigterm.py"),
        "case": {"folder": "case"}, "output": {"files": "u_*.npy"},
    }  # fmt: skip
    (folder.path / "case").mkdir()
    write(folder, count=2, solvers=solvers)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 2, "complete": 0, "failed": 0, "cancelled": 2}
    assert result.summary["retries"] == [] and 5 < result.seconds < 40


@pytest.mark.full
@pytest.mark.parametrize("keys", [
    {"samples": {"window": 3}},
    {"fields": {"u": {"dtype": "float32", "shape": [4, 6]}, "c": CONSTANT}},
    {"trainers": 2},
    {"buffer": {"policy": "reservoir", "capacity": 8}},
])  # fmt: skip
def test_cancel_works_with_windows_constants_two_trainers_and_a_reservoir(
    folder: JobFolder, keys: dict[str, Any]
) -> None:
    function = "with_constants" if "fields" in keys else "whole"
    write(folder, solvers={"groups": 2, "function": f"functions.endless:{function}"}, **keys)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["cancelled"] == 4 and result.summary["lost_groups"] == 0


@pytest.mark.full
@pytest.mark.parametrize("solvers", [{"ranks_per_group": 2}, {"carried": {"ranks": 1}}])
def test_cancel_ends_simulations_that_refresh(folder: JobFolder, solvers: dict[str, Any]) -> None:
    options = {"seed": 1, "steps": 1 << 30, "step_s": 0.001, "refreshes": 100, "elements": 1, "rows": False}
    (folder.path / "options.json").write_text(json.dumps(options))
    folder.variables["LOOP_OPTIONS"] = str(folder.path / "options.json")
    keys = {"fields": {"u": {"dtype": "float32", "shape": [12, 6]}}}
    write(folder, count=2, solvers={"program": python("loop/program.py"), **solvers}, **keys)
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"]["cancelled"] == 2 and result.summary["lost_groups"] == 0, result.logs()


def test_ranks_that_do_not_put_end_at_the_same_step(folder: JobFolder) -> None:
    """After a refresh that learns of a cancel, some calls are made by one rank only: all ranks continue to the step."""
    folder.write(
        solver="""
import mpidata
group = mpidata.solver.group()
for simulation in mpidata.solver.simulations():
    try:
        for step in range(1 << 30):
            mpidata.solver.refresh()
            if group.Get_rank() == 0:
                simulation.put(u=step)
            group.Barrier()
            simulation.step(step)
    except mpidata.solver.SimulationCancelled:
        continue
"""
    )
    solvers = {"program": ["python", "solver.py"], "ranks_per_group": 2, "timeout_s": 3, "retries": 0}
    write(folder, solvers=solvers, fields={"u": {"dtype": "float32", "shape": []}})
    result = folder.run()
    assert result.status == 0 and result.summary["lost_groups"] == 0, result.logs()
    assert result.summary["simulations"]["cancelled"] == 4, result.logs()


@pytest.mark.full
def test_cancelled_simulation_is_not_retried_if_its_group_dies(folder: JobFolder) -> None:
    folder.write(
        dying="""
import os, signal, time
def simulate(alpha, simulation):
    step = 0
    try:
        while True:
            yield {"u": [[float(step)] * 6] * 4}
            step += 1
            time.sleep(0.001)
    except GeneratorExit:
        if simulation == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        raise
"""
    )
    write(folder, solvers={"groups": 2, "function": "dying:simulate"})
    result = folder.run()
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 0, "failed": 0, "cancelled": 4}
    assert result.summary["retries"] == [] and result.summary["lost_groups"] == 1
    ran = Counter(event["simulation"] for event in result.events() if event["event"] == "dispatch")
    assert ran == Counter(range(4)), "none runs a second time"


@pytest.mark.full
@pytest.mark.parametrize("checkpoint", [None, {"every_s": 0.2}])
def test_resume_skips_cancelled_simulations(folder: JobFolder, checkpoint: dict[str, float] | None) -> None:
    folder.variables |= {"STOP_AT": "15", "SLEEP_S": "0.1"}
    keys = {"checkpoint": checkpoint} if checkpoint else {}
    write(folder, "first", 1, 3, solvers={"function": "functions.steps:simulate"}, **keys)
    first = folder.run()
    assert first.status != 0 and first.run is not None
    result = folder.resume(first.run)
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 4, "complete": 2, "failed": 0, "cancelled": 2}
    assert {event["simulation"] for event in result.events() if event["event"] == "dispatch"} == {0, 2}


@pytest.mark.full
@pytest.mark.parametrize("trainers", [1, 2])
def test_replay_with_cancels_draws_the_same_samples(folder: JobFolder, trainers: int) -> None:
    write(folder, trainers=trainers, journal=True, solvers={"groups": 2, "function": "functions.endless:whole"})
    first = folder.run()
    assert first.status == 0, first.logs()
    again = folder.run(command=[*folder.command()[:2], "--replay", str(first.run)])
    assert again.status == 0, again.logs()
    for trainer in range(trainers):
        assert told(again, trainer)["drawn"] == told(first, trainer)["drawn"]
    assert again.summary["simulations"] == first.summary["simulations"]
