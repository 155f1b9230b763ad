"""A Python solver that raises has failed one try of one simulation; one that gives a simulation up has it set aside."""

import re

import pytest
from jobs import DRAIN, JobFolder, Result

ROD = """
import os
import mpidata
def simulate(SIGNATURE):
    yield {"u": ROWS}
    if simulation == 1 and not os.path.exists("tried"):
        open("tried", "w").close()
        raise ValueError("negative density")
    if simulation == 2:
        raise mpidata.GiveUp("diverged")
    if simulation == 3:
        raise RuntimeError("never any good")
    yield {"u": ROWS}
"""
PROGRAM = """
import os
import mpidata
rank = mpidata.solver.group().Get_rank()
for simulation in mpidata.solver.simulations():
    simulation.put_block("u", [[0.0] * 6] * 2, (2 * rank, 0))
    simulation.step(0)
    if simulation.id == 1 and rank == 0 and not os.path.exists("tried"):
        open("tried", "w").close()
        raise ValueError("negative density")
"""


def job(folder: JobFolder, ulfm: bool = True, **solvers: object) -> Result:
    folder.job(
        launch={"fault_tolerance": "auto" if ulfm else False},
        trainers=DRAIN,
        solvers=solvers,
        parameters={"count": 6, "space": {"alpha": [0.0, 1.0]}},
    )
    return folder.run(timeout=60)


def test_a_function_of_one_rank_lives_on(folder: JobFolder) -> None:
    rows = "[[0.0] * 6] * 4"
    folder.write(rod=ROD.replace("SIGNATURE", "alpha, simulation").replace("ROWS", rows))
    result = job(folder, groups=1, function="rod:simulate")
    assert result.status == 0, result.logs()
    summary = result.summary
    assert summary["simulations"] == {"requested": 6, "complete": 4, "failed": 2} and summary["lost_groups"] == 0
    raised = ["raised ValueError: negative density (rod.py line 8)"]
    raised += ["raised RuntimeError: never any good (rod.py line 12)"] * 2
    assert [(entry["how"], entry["cause"]) for entry in summary["retries"]] == [(how, "raised") for how in raised]
    told = [(entry["simulation"], entry["tries"], entry["cause"], entry["how"]) for entry in summary["set_aside"]]
    assert told == [(2, 1, "given_up", "gave it up: diverged"), (3, 3, "raised", raised[-1])]
    assert result.log("solver").count("Traceback") == 4
    # The first one is shown while the job runs.
    before, traceback, after = result.output.partition("  Traceback (most recent call last):\n")
    assert f"A solver of group 0 {raised[0]}." in before and "never any good" not in before
    assert "  ValueError: negative density\n" in after
    assert "Traceback" not in after.partition("Set aside:")[0]


def test_a_function_that_never_works_ends_the_job(folder: JobFolder) -> None:
    folder.write(rod="def simulate(alpha):\n    raise ValueError('negative density')\n    yield\n")
    result = job(folder, groups=2, function="rod:simulate")
    assert result.status == 1, result.logs()
    # Each group must have failed: one may have tried several before the other one's first.
    assert re.match("[3-6] simulations were set aside, and none is complete", result.summary["error"])
    assert "raised ValueError: negative density (rod.py line 2)" in result.summary["error"]


@pytest.mark.full
def test_a_function_of_several_ranks_costs_its_group(folder: JobFolder) -> None:
    rows = "(numpy.zeros((2, 6)), (2 * group.Get_rank(), 0))"
    text = ROD.replace("SIGNATURE", "alpha, group, simulation").replace("ROWS", rows)
    # Rank 0, with which a group asks for the next simulation.
    text = text.replace("simulation == 1", "simulation == 1 and group.Get_rank() == 0").replace("== 3", "== 9")
    folder.write(rod=text.replace("import os", "import os, numpy"))
    result = job(folder, groups=1, spares=1, ranks_per_group=2, function="rod:simulate")
    check_one_group_is_lost(result, "raised ValueError: negative density (rod.py line 8)")
    (entry,) = result.summary["set_aside"]
    assert (entry["simulation"], entry["how"], entry["tries"]) == (2, "gave it up: diverged", 1)


def test_a_program_costs_its_group(folder: JobFolder) -> None:
    folder.write(rod=PROGRAM)
    result = job(folder, groups=1, spares=1, ranks_per_group=2, program=["python", "rod.py"])
    check_one_group_is_lost(result, "raised ValueError: negative density (rod.py line 10)")


def check_one_group_is_lost(result: Result, how: str) -> None:
    assert result.status == 0, result.logs()
    summary = result.summary
    assert summary["lost_groups"] == 1
    # Simulation 0 too, where the trainer did not have all of it yet.
    tries = [(entry["simulation"], entry["cause"], entry["how"], entry["exit"]) for entry in summary["retries"]]
    assert tries[0] == (1, "raised", how, 1) and tries[1:] in ([], [(0, *tries[0][1:])])


@pytest.mark.full
def test_without_ulfm_the_group_is_the_job(folder: JobFolder) -> None:
    folder.write(rod=PROGRAM)
    result = job(folder, ulfm=False, groups=1, ranks_per_group=2, program=["python", "rod.py"])
    assert result.status == 1, result.logs()
    assert "ValueError: negative density (rod.py line 10). Solver rank 2" in result.summary["error"]
    assert "simulation 1, step 1" in result.summary["error"]
