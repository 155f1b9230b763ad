"""A Python solver that raises fails one try of one simulation; a simulation that it abandons is set aside."""

import re
from pathlib import Path

import pytest
from jobs import DRAIN, PROGRAMS, JobFolder, Result, python

PROGRAM = python("solvers/mistakes/raises.py")


def job(folder: JobFolder, ulfm: bool = True, **solvers: object) -> Result:
    folder.job(
        launch={"fault_tolerance": "auto" if ulfm else False},
        trainers=DRAIN,
        solvers=solvers,
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
    )
    return folder.run(timeout=60)


def test_exception_in_a_function_fails_only_its_try(folder: JobFolder) -> None:
    result = job(folder, groups=1, function="functions.failing.raises:simulate")
    assert result.status == 0, result.logs()
    summary = result.summary
    assert summary["simulations"] == {"requested": 6, "complete": 4, "failed": 2} and summary["lost_groups"] == 0
    raised = ["raised ValueError: negative density (raises.py line 15)"]
    raised += ["raised RuntimeError: never any good (raises.py line 19)"] * 2
    assert [(entry["how"], entry["cause"]) for entry in summary["retries"]] == [(how, "raised") for how in raised]
    told = [(entry["simulation"], entry["tries"], entry["cause"], entry["how"]) for entry in summary["set_aside"]]
    assert told == [(2, 1, "given_up", "gave it up: diverged"), (3, 3, "raised", raised[-1])]
    assert result.log("solver").count("Traceback") == 4
    # The first traceback is shown while the job runs.
    before, traceback, after = result.output.partition("  Traceback (most recent call last):\n")
    assert f"A solver of group 0 {raised[0]}." in before and "never any good" not in before
    assert "  ValueError: negative density\n" in after
    assert "Traceback" not in after.partition("Set aside:")[0]


def test_function_that_always_raises_fails_the_job(folder: JobFolder) -> None:
    folder.write(rod="def simulate(alpha):\n    raise ValueError('negative density')\n    yield\n")
    result = job(folder, groups=2, function="rod:simulate")
    assert result.status == 1, result.logs()
    # Each group must have failed: one may have tried several simulations before the other tried its first.
    assert re.match("[3-6] simulations were set aside, and none is complete", result.summary["error"])
    assert "raised ValueError: negative density (rod.py line 2)" in result.summary["error"]


@pytest.mark.full
def test_exception_in_a_function_on_several_ranks_loses_its_group(folder: JobFolder) -> None:
    function = "functions.failing.raises:simulate_on_two_ranks"
    result = job(folder, groups=1, spares=1, ranks_per_group=2, function=function)
    check_one_group_is_lost(result, "raised ValueError: negative density (raises.py line 29)")
    (entry,) = result.summary["set_aside"]
    assert (entry["simulation"], entry["how"], entry["tries"]) == (2, "gave it up: diverged", 1)


def test_exception_in_a_program_loses_its_group(folder: JobFolder) -> None:
    result = job(folder, groups=1, spares=1, ranks_per_group=2, program=PROGRAM)
    check_one_group_is_lost(result, "raised ValueError: negative density (raises.py line 13)")


def check_one_group_is_lost(result: Result, how: str) -> None:
    assert result.status == 0, result.logs()
    summary = result.summary
    assert summary["lost_groups"] == 1
    # Also simulation 0, if the trainer did not have all of it yet.
    tries = [(entry["simulation"], entry["cause"], entry["how"], entry["exit"]) for entry in summary["retries"]]
    assert tries[0] == (1, "raised", how, 1) and tries[1:] in ([], [(0, *tries[0][1:])])


@pytest.mark.full
def test_exception_in_a_program_without_ulfm_fails_the_job(folder: JobFolder) -> None:
    result = job(folder, ulfm=False, groups=1, ranks_per_group=2, program=PROGRAM)
    assert result.status == 1, result.logs()
    assert "ValueError: negative density (raises.py line 13). Solver rank 2" in result.summary["error"]
    assert "simulation 1, step 1" in result.summary["error"]


@pytest.mark.parametrize("kind", ["function", pytest.param("program", marks=pytest.mark.full)])
def test_device_error_fails_the_try(folder: JobFolder, standin: Path, kind: str) -> None:
    folder.variables = {"STANDIN": str(standin), "PYTHONPATH": str(PROGRAMS)}
    program = {"function": "functions.failing.device:simulate", "program": python("functions/failing/device.py")}
    result = job(folder, groups=1, spares=1, **{kind: program[kind]})
    assert result.status == 0, result.logs()
    assert result.summary["simulations"] == {"requested": 6, "complete": 6, "failed": 0}
    (entry,) = [entry for entry in result.summary["retries"] if entry["simulation"] == 1]
    said = "The copy of an array to the host failed on CUDA: error 700, an illegal memory access was encountered. "
    assert entry["cause"] == "raised" and said in result.logs(), (entry, result.logs())


@pytest.mark.full
def test_device_error_without_ulfm_fails_the_job(folder: JobFolder, standin: Path) -> None:
    folder.variables = {"STANDIN": str(standin), "PYTHONPATH": str(PROGRAMS)}
    result = job(folder, ulfm=False, groups=1, function="functions.failing.device:simulate")
    assert result.status == 1, result.logs()
    assert "The copy of an array to the host failed on CUDA: error 700" in result.summary["error"]
