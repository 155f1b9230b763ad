"""Only the traceback of a solver's first exception is shown."""

import json
from pathlib import Path

from launch_job import make_plan

from mpidata.launch.watching.first_exception import FirstException
from mpidata.run.folder import RunFolder
from mpidata.run.rank_files import PlannedRun

BEGINS = "Traceback (most recent call last):"


def test_only_the_first_exception_of_a_solver_is_shown(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    run = RunFolder(plan.run)
    old = {"event": "retry", "group": 0, "cause": "raised", "how": "raised OSError"}
    run.events.write_text(json.dumps(old) + "\n")
    log = PlannedRun(run, plan).group_log(1, 0)
    chain = [
        BEGINS,
        "  one",
        "KeyError: 1",
        "",
        "During handling of the above ...",
        "",
        BEGINS,
        "  two",
        "ValueError: x",
    ]
    last = "mpidata: Solver rank 3, simulation 1, step 2, raised ValueError: x (a.py line 3)"
    begun = ["mpidata: Solver rank 3, simulation 1, step 1, raised OSError", "working"]
    then = ["next simulation", BEGINS, "mpidata: Solver rank 3, simulation 2, step 2, raised KeyError: 3", ""]
    log.write_text("\n".join([*begun, *chain, last, *then]))
    how = "raised ValueError: x (a.py line 3)"
    found = FirstException(run, plan)
    assert found.lines() == []
    with open(run.events, "a") as events:
        for event in (
            {"event": "retry", "group": 0, "cause": "signal", "how": "was killed by SIGSEGV"},
            {"event": "group_lost", "group": 1, "rank_in_group": 0, "cause": "raised", "how": how},
            {"event": "retry", "group": 1, "cause": "raised", "how": how},
        ):
            events.write(json.dumps(event) + "\n")
    first, *traceback = found.lines()
    assert first == f"A solver of group 1 {how}. This is the first exception of this run; {log} has:"
    assert traceback == [f"  {line}" for line in (*chain, last)]
    with open(run.events, "a") as events:
        events.write(json.dumps(old) + "\n")
    assert found.lines() == [] == found.lines(last=True)


def test_exception_of_a_lost_elastic_trainer_is_shown(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    run = RunFolder(plan.run)
    log = PlannedRun(run, plan).log(1)
    log.write_text("\n".join(["step 5", BEGINS, "  one", "ValueError: x", ""]))
    found = FirstException(run, plan)
    how = "raised ValueError: x (train.py line 3)"
    run.events.write_text(json.dumps({"event": "trainer_lost", "trainer": 0, "cause": "raised", "how": how}) + "\n")
    first, *traceback = found.lines()
    assert first == f"Trainer 0 {how}. This is the first exception of this run; {log} has:"
    assert traceback[:3] == [f"  {line}" for line in (BEGINS, "  one", "ValueError: x")]


def test_exception_is_shown_without_a_readable_log(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, {})
    run = RunFolder(plan.run)
    found = FirstException(run, plan)
    run.events.write_text(
        '{"cause": "raised"\n' + json.dumps({"group": 1, "cause": "raised", "how": "raised X"}) + "\n"
    )
    assert [line.partition(". ")[0] for line in found.lines()] == ["A solver of group 1 raised X"]
