"""What ended a job: which of several failures, or what the launcher reported."""

import json
import signal
from typing import Any

import pytest
from ended_run import EndedRun

from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.outcome import settle
from mpidata.launch.watching.supervise import LauncherEnd

_ABORT = """\
MPI_ABORT was invoked on rank 4 in communicator MPI_COMM_WORLD
  Proc: [[58517,1],1]
  Errorcode: 5
"""
_KILLED = """\
prterun noticed that process rank 2 with PID 6326 on node vm exited on
signal 9 (Killed).
"""


@pytest.mark.parametrize(
    ("end", "joined", "said", "died"),
    [
        (LauncherEnd(-9), True, "The launcher was killed by SIGKILL and the job with it. ", True),
        (LauncherEnd(1), True, "The launcher ended with exit status 1 and the job with it. ", True),
        (LauncherEnd(1), False, "The launcher ended with exit status 1 and the job with it. ", False),
        (LauncherEnd(0, vanished=0), True, "The scheduler (rank 0) is gone without an exit note: it was", True),
        (
            LauncherEnd(0, ended_ranks=True),
            True,
            "The launcher has ended the ranks, because it received SIGTERM or",
            True,
        ),
    ],
)
def test_death_of_the_launcher_or_scheduler_is_the_cause(
    case: EndedRun, end: LauncherEnd, joined: bool, said: str, died: bool
) -> None:
    (case.run.logs / "rank-0000-scheduler.log").touch()
    if joined:
        case.run.events.write_text("start\n")
    found = settle(case.attempt, end, 3.0)
    assert found.summary["error"].startswith(said) and found.died is died


@pytest.mark.parametrize("ulfm", [False, True])
def test_killed_solver_is_the_cause_only_without_ulfm(case: EndedRun, ulfm: bool) -> None:
    if ulfm:
        case.fault_tolerant()
    case.record(4, ago_s=2, signal=9)
    found = settle(case.attempt, LauncherEnd(9, vanished=0), 3.0)
    expected = "The scheduler (rank 0) is gone" if ulfm else "A solver of group 0 (rank 4, number 1 of the group) was"
    assert found.summary["error"].startswith(expected) and found.died


def test_first_failed_rank_is_the_cause(case: EndedRun) -> None:
    case.record(0, ago_s=20, signal=15, told=True)
    case.record(3, ago_s=8, signal=11)
    case.record(1, ago_s=9, exit=1)
    assert case.settle()[2].startswith("Trainer 0 (rank 1) ended with exit status 1. ")


def test_a_spawned_rank_that_ended_first_is_the_cause(case: EndedRun) -> None:
    case.record(0, ago_s=3, exit=14)
    spawned = {"rank": None, "exit": 4, "signal": None, "told": False, "error": None, "joined": True}
    (case.run.exits / "group-0003-1").write_text(json.dumps(spawned))
    case.age(case.run.exits / "group-0003-1", 4)
    assert case.settle()[2].startswith("A solver of the spawned group 3 ended with exit status 4. ")
    assert case.died and case.log == case.run.logs / "group-0003-solver-1.log"


def test_killed_spawned_rank_is_the_cause_of_a_vanished_scheduler(case: EndedRun) -> None:
    spawned = {"rank": None, "exit": None, "signal": 11, "told": False, "error": None, "joined": True}
    (case.run.exits / "group-0003-0").write_text(json.dumps(spawned))
    found = settle(case.attempt, LauncherEnd(9, vanished=0), 3.0)
    assert found.summary["error"].startswith("A solver of the spawned group 3 was killed by SIGSEGV. ")


def test_a_spawned_loader_that_ended_first_is_the_cause(case: EndedRun) -> None:
    case.record(0, ago_s=3, exit=14)
    spawned = {"rank": None, "exit": None, "signal": 9, "told": False, "error": None, "joined": True, "item": "index 7"}
    (case.run.exits / "loader-0003").write_text(json.dumps(spawned))
    case.age(case.run.exits / "loader-0003", 4)
    sentence = case.settle()[2]
    assert sentence.startswith("The spawned loader 3 was killed by SIGKILL")
    assert "while it worked on index 7. Its output is in" in sentence
    assert case.died and case.log == case.run.logs / "loader-0003.log"


def test_error_of_the_shim_is_reported(case: EndedRun) -> None:
    case.record(1, ago_s=1, exit=127, error="Cannot start 'x'. It is gone. Build it.")
    assert case.settle() == (1, "failed", "Cannot start 'x'. It is gone. Build it.")


def test_sigkill_is_reported_with_an_out_of_memory_hint(case: EndedRun) -> None:
    case.record(0, ago_s=1, signal=9)
    assert case.settle()[2].startswith("The scheduler (rank 0) was killed by SIGKILL, perhaps because memory ran out")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (_ABORT, "A solver of group 0 (rank 4, number 1 of the group) called MPI_Abort with 5. "),
        (_KILLED, "Trainer 1 (rank 2) was killed by SIGKILL, perhaps"),
        ("", "The launcher ended with exit status 7 and the job with it. "),
    ],
)
def test_cause_is_read_from_the_launcher_log(case: EndedRun, text: str, sentence: str) -> None:
    case.run.launcher_log.write_text(text)
    (case.run.logs / "rank-0000-scheduler.log").touch()
    case.record(3, ago_s=1, signal=15, told=True)
    assert case.settle(7)[2].startswith(sentence)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (
            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
            "was killed by SIGKILL, perhaps because memory ran out (see `dmesg`)",
        ),
        ("[proxy:0@vm] handle_pmi_response (p.c:435): unable to forward PMI response to MPI process\n", "is gone"),
    ],
)
def test_mpidata_rank_killed_while_ranks_start_is_the_cause(case: EndedRun, text: str, how: str) -> None:
    """MPICH's launcher then ends; nothing is lost, so the job may start again."""
    case.run.launcher_log.write_text(text)
    (case.run.logs / "rank-0000-scheduler.log").touch()
    found = settle(case.attempt, LauncherEnd(9), 3.0)
    assert found.summary["error"].startswith(f"The mpidata-rank of a rank {how}, and the job with it. ") and found.died


_INIT = "[vm:00000] *** An error occurred in MPI_Init_thread\n[vm:00000] *** Unknown error\n"


@pytest.mark.parametrize(
    ("first", "said", "joined", "of_mpi"),
    [
        ({"exit": 14}, _INIT, False, True),
        ({"exit": 3}, _INIT, False, False),
        ({"signal": 11}, _INIT, False, False),
        ({"abort": 14}, _INIT, False, False),
        ({"exit": 14, "joined": True}, _INIT, False, False),
        ({"exit": 14}, "", False, False),
        ({"exit": 14}, _INIT, True, False),
    ],
)
def test_mpi_init_that_fails_since_a_rank_without_a_note_was_killed_is_no_fault_of_a_program(
    case: EndedRun, first: dict[str, int], said: str, joined: bool, of_mpi: bool
) -> None:
    case.run.launcher_log.write_text(said)
    case.record(2, ago_s=2, **{"joined": False, **first})
    case.record(5, ago_s=1, joined=False, exit=14)
    if joined:
        case.joined(3)
    error = case.settle(1)[2]
    assert error.startswith("MPI_Init failed: a rank was killed" if of_mpi else "Trainer 1 (rank 2) ")
    assert case.died == (of_mpi or "signal" in first) and case.early == (not joined)


def test_launcher_failure_before_any_rank_started_is_reported(case: EndedRun) -> None:
    case.run.launcher_log.write_text("no room\n")
    assert case.settle(213)[2].startswith("The launcher ended with exit status 213 before any rank had started. ")
    case.run.summary.unlink()
    case.run.launcher_log.write_text("some\nmpidata: Not enough ranks. Start more.\n---\n")
    assert case.settle(1)[2] == "Not enough ranks. Start more."


@pytest.mark.parametrize(
    ("rank", "ago_s", "record", "summary", "died"),
    [
        (0, 11, {"signal": 9}, None, True),
        (0, 11, {"exit": 1}, None, False),
        (2, 11, {"signal": 11}, "failed", True),
        (2, 9, {"signal": 11}, "complete", False),
        (2, 9, {"signal": 11}, "failed", False),  # possibly only a consequence
        (2, 11, {"exit": 1}, "failed", False),
        (5, 11, {"signal": 11}, None, True),
        (5, 11, {"exit": 3}, None, True),
        (5, 11, {"signal": 9, "silent_s": 60.0}, None, True),
        (5, 11, {"exit": None, "abort": 4}, None, True),
        (5, 11, {"signal": 9, "late": True, "error": "Late.", "joined": False}, None, False),
        (5, 11, {"exit": 127, "error": "Cannot start.", "joined": False}, None, False),
    ],
)
def test_only_deaths_permit_an_unchanged_resume(
    case: EndedRun, rank: int, ago_s: float, record: dict[str, Any], summary: str | None, died: bool
) -> None:
    case.record(rank, ago_s, **record)
    if summary is not None:
        case.summary(summary)
    assert case.settle()[:2] == (1, "failed") and case.died is died


def test_death_reported_by_the_scheduler_counts_as_a_death(case: EndedRun) -> None:
    case.summary("failed", "Trainer 1 died.")
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 1 died.", "died": True}))
    assert case.settle() == (1, "failed", "Trainer 1 died.") and case.died


def test_scheduler_error_takes_precedence_over_exit_notes(case: EndedRun) -> None:
    case.summary("failed", "The field is unknown.")
    case.record(5, ago_s=11, exit=3)
    assert case.settle() == (1, "failed", "The field is unknown.")
    case.summary("failed")
    assert "exit status 3" in case.settle()[2]


def test_logs_and_events_of_earlier_starts_are_ignored(case: EndedRun) -> None:
    case.run.launcher_log.write_text(_KILLED)
    case.run.events.write_text("start\n")
    (case.run.logs / "rank-0000-scheduler.log").touch()
    case.attempt = Attempt.of(case.run, case.plan)
    assert not case.attempt.joined()
    assert case.settle(7)[2].startswith("The launcher ended with exit status 7 and the job with it. ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signal_stops_the_run_unless_it_completed_or_failed(case: EndedRun, number: int) -> None:
    assert case.settle(0, number) == (75, "stopped", "")
    assert json.loads(case.run.summary.read_text())["reason"] == signal.Signals(number).name
    case.summary("stopped")
    assert case.settle(0, number) == (75, "stopped", "")
    case.summary("complete")
    assert case.settle(0, number) == (0, "complete", "")
    case.summary("failed", "It failed.")
    assert case.settle(0, number) == (1, "failed", "It failed.")
