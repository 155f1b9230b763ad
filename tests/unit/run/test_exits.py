"""The exit notes of failed ranks, as mpidata-rank writes them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from launch_job import make_plan

from mpidata.run.exits import Exit, last_lines, read_exit, signal_name, tail


@pytest.mark.parametrize(
    ("record", "cause", "sentence"),
    [
        ({"signal": 11}, "signal", "was killed by SIGSEGV"),
        ({"signal": 9}, "signal", "was killed by SIGKILL, perhaps because memory ran out (see `dmesg`)"),
        (
            {"signal": 9, "silent_s": 600.2, "silent_key": "solvers.start_timeout_s"},
            "silent",
            "was silent for 600 s, longer than solvers.start_timeout_s allows. It may wait in a call on "
            "MPI_COMM_WORLD, which contains all ranks of the job in the split start, or in a collective call of "
            "mpidata (step, fail) that only some ranks of its group made",
        ),
        (
            {"signal": 9, "silent_s": 60.2, "silent_key": "solvers.timeout_s", "stopped": True},
            "silent",
            "was silent for 60 s, longer than solvers.timeout_s allows. A signal, for example SIGSTOP, had stopped it",
        ),
        ({"signal": 9, "late": True, "joined": False, "error": "Late."}, "late", "did not join the job in time"),
        ({"exit": None, "abort": 4}, "abort", "called MPI_Abort with 4"),
        ({"exit": 3}, "exit", "ended with exit status 3"),
        ({"exit": 127}, "exit", "ended with exit status 127 (a program or a shared library was not found)"),
        ({"exit": 1, "raised": "raised ValueError: x (a.py line 3)"}, "raised", "raised ValueError: x (a.py line 3)"),
        ({"exit": 0, "error": "Ended."}, "exit", "ended with exit status 0 before mpidata_finalize"),
        ({"exit": 0, "joined": False}, "exit", "ended with exit status 0 without mpidata_init"),
        ({"exit": 127, "error": "Cannot start.", "joined": False}, "not_started", "could not be started"),
        ({"exit": 3, "item": "index 7"}, "exit", "ended with exit status 3, while it worked on index 7"),
        ({}, "unknown", "ended for an unknown reason"),
    ],
)
def test_exit_notes_give_cause_and_sentence(tmp_path: Path, record: dict[str, Any], cause: str, sentence: str) -> None:
    plan = make_plan(tmp_path, {})
    whole = {"rank": 5, "exit": None, "signal": None, "joined": True, "silent_s": None, "told": False, "error": None}
    (plan.run / "exits" / "rank-0005").write_text(json.dumps({**whole, **record}))
    found = read_exit(plan.run, plan, 1, 0)
    assert found is not None and (found.cause, found.sentence()) == (cause, sentence)
    assert (found.rank, found.told, found.error) == (5, False, record.get("error")) and found.at > 0


def test_notes_of_spawned_groups_are_read_and_broken_notes_ignored(tmp_path: Path) -> None:
    plan = dataclasses.replace(make_plan(tmp_path, {}), start="spawn", world=3)
    assert read_exit(plan.run, plan, 1, 0) is None and last_lines(plan.run, plan, 1, 0) == []
    path = plan.run / "exits" / "group-0001-0"
    path.write_text('{"exit": 3, "signal": null, "joined": true, "told": true}')
    found = read_exit(plan.run, plan, 1, 0)
    assert found == Exit("exit", None, 3, None, True, True, None, None, path.stat().st_mtime_ns)
    (plan.run / "logs" / "group-0001-solver-0.log").write_text("".join(f"line {i}\n" for i in range(20)))
    assert last_lines(plan.run, plan, 1, 0, n=2) == ["line 18", "line 19"]
    for text in ("", "[]", "{}", "3"):
        path.write_text(text)
        assert read_exit(plan.run, plan, 1, 0) is None


def test_signal_names_include_unknown_numbers() -> None:
    assert (signal_name(15), signal_name(200)) == ("SIGTERM", "signal 200")


def test_last_lines_of_a_log_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert tail(path, 2) == []
    path.write_bytes(b"".join(b"line %d \xff\n" % i for i in range(10000)))
    assert tail(path, 2) == ["line 9998 \ufffd", "line 9999 \ufffd"]
