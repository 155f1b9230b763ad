import json
from pathlib import Path
from typing import Any

import pytest
from fake_library import make_plan

from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.rank_files import PlannedRun
from mpidata.scheduler.deaths.lost_groups import Cause, Losses


def a_plan(tmp_path: Path, **changes: Any) -> Plan:
    (tmp_path / "exits").mkdir()
    (tmp_path / "logs").mkdir()
    sizes = {"run": tmp_path, "groups": 2, "ranks_per_group": 3, "world": 8, "simulations": 10, "validation": 2}
    return make_plan(**sizes | changes)


def exit_note(plan: Plan, group: int, rank: int, **values: Any) -> None:
    run = PlannedRun(RunFolder(plan.run), plan)
    run.group_exit(group, rank).write_text(json.dumps({"signal": None, "exit": None, "joined": True, **values}))
    run.group_log(group, rank).write_text(f"last words of {group}, {rank}\n")


@pytest.mark.parametrize(
    "values, kind, sentence",
    [
        ({"signal": 11}, "signal", "was killed by SIGSEGV"),
        ({"exit": 3}, "exit", "ended with exit status 3"),
        (
            {"signal": 9, "silent_s": 61.2, "silent_key": "solvers.timeout_s"},
            "silent",
            "was silent for 61 s, longer than solvers.timeout_s allows",
        ),
        ({"exit": 1, "error": "No such program"}, "not_started", "could not be started"),
    ],
)
@pytest.mark.parametrize("group", [1, 5])
def test_cause_is_read_from_the_exit_note_of_the_rank(
    tmp_path: Path, group: int, values: dict[str, Any], kind: str, sentence: str
) -> None:
    plan = a_plan(tmp_path)
    exit_note(plan, group, 2, **values)
    cause = Cause.of_group(plan, group, 2)
    assert (cause.kind, cause.sentence, cause.rank_in_group) == (kind, sentence, 2)
    assert cause.output == [f"last words of {group}, 2"]
    assert cause.told() == {
        "cause": kind,
        "how": sentence,
        "signal": values.get("signal"),
        "exit": values.get("exit"),
    }


def test_rank_that_ended_because_of_another_is_not_the_cause(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    exit_note(plan, 0, 0, exit=1, told=True)
    exit_note(plan, 0, 1, signal=9, told=True)
    exit_note(plan, 0, 2, signal=6)
    exit_note(plan, 1, 0, signal=11)
    cause = Cause.of_group(plan, 0, 0)
    assert (cause.signal, cause.rank_in_group, cause.output) == (6, 2, ["last words of 0, 2"])


def test_death_without_an_exit_note_has_an_unknown_cause(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    exit_note(plan, 0, 0, exit=1, told=True)
    cause = Cause.of_group(plan, 0, 1)
    assert cause.kind == "unknown" and cause.rank_in_group == 1 and cause.output == []
    assert "vanished without an exit note" in cause.sentence


def test_abandoned_simulation_reports_the_output_of_rank_0_of_its_group(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    PlannedRun(RunFolder(plan.run), plan).group_log(1, 0).write_text("".join(f"{i}\n" for i in range(100)))
    cause = Cause.given_up(plan, 1, "it diverged")
    assert (cause.kind, cause.sentence) == ("given_up", "gave it up: it diverged") and cause.output == [
        str(i) for i in range(90, 100)
    ]


def losses(plan: Plan, set_aside: int) -> Losses:
    found = Losses(plan)
    for simulation in range(set_aside):
        found.give_up(simulation, 3, 1, Cause("exit", "ended with exit status 3", status=3), [0.5, 2.0])
    return found


@pytest.mark.parametrize(
    "tolerate, set_aside, complete, words",
    [
        (-1, 0, 0, ""),
        (-1, 2, 0, ""),
        (-1, 3, 0, "3 simulations were set aside, and none is complete"),
        (-1, 11, 1, ""),
        (0, 1, 9, "1 simulation was set aside, more than solvers.tolerate, 0"),
        (2, 2, 0, ""),
        (2, 3, 9, "3 simulations were set aside, more than solvers.tolerate, 2"),
    ],
)
def test_verdict_fails_the_job_if_too_many_simulations_are_set_aside(
    tmp_path: Path, tolerate: int, set_aside: int, complete: int, words: str
) -> None:
    verdict = losses(a_plan(tmp_path, groups=1, tolerate=tolerate), set_aside).verdict(complete)
    assert verdict.startswith(words) and bool(verdict) == bool(words)
    if words:
        last = f"simulation {set_aside - 1}, whose solver (group 1) ended with exit status 3"
        assert last in verdict and str(tmp_path) in verdict


def test_no_verdict_before_every_group_has_failed(tmp_path: Path) -> None:
    found = losses(a_plan(tmp_path, groups=2, simulations=9), 5)
    assert found.verdict(0) == ""
    found.retry(7, 1, 0, Cause("raised", "raised ValueError"))
    assert found.verdict(0).startswith("5 simulations were set aside, and none is complete")
    assert found.verdict(1) == ""


def test_job_of_two_simulations_fails_only_if_both_are_set_aside(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, simulations=2, validation=0)
    assert losses(plan, 1).verdict(0) == "" and losses(plan, 2).verdict(0) != ""


def test_abandoned_simulations_fail_the_job_only_if_all_are_abandoned(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, simulations=10, validation=0)
    found = Losses(plan)
    for simulation in range(10):
        assert found.verdict(0) == ""
        found.give_up(simulation, 1, 1, Cause.given_up(plan, 1, "it diverged"), [0.5, 2.0])
    assert found.verdict(0).startswith("10 simulations were set aside, and none is complete")
    assert found.verdict(1) == ""


def test_simulations_set_aside_before_a_resume_count_only_against_tolerate(tmp_path: Path) -> None:
    entry = {"simulation": 1, "cause": "exit", "how": "ended with exit status 3", "group": 1}
    found = losses(a_plan(tmp_path), 0)
    found.keep([entry] * 4)
    assert found.verdict(0) == ""
    found = Losses(make_plan(run=tmp_path, tolerate=3))
    found.keep([entry] * 4)
    assert found.verdict(9).startswith("4 simulations were set aside, more than solvers.tolerate, 3")


def test_mpi_abort_caused_by_another_death_is_not_the_cause(tmp_path: Path) -> None:
    plan = a_plan(tmp_path)
    exit_note(plan, 1, 0, abort=75)
    assert Cause.of_group(plan, 1, 0).sentence == "called MPI_Abort with 75"
    exit_note(plan, 1, 2, abort=4)
    cause = Cause.of_group(plan, 1, 0)
    assert (cause.sentence, cause.rank_in_group, cause.status) == ("called MPI_Abort with 4", 2, 4)
