import dataclasses
import errno
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mpidata.launch.watching import outcome
from mpidata.launch.watching.attempt import Attempt
from mpidata.launch.watching.outcome import settle
from mpidata.launch.watching.result import show_outcome
from mpidata.launch.watching.supervise import Ending
from mpidata.run.aside import BEGUN, read_summary
from mpidata.run.exits import tail
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.scheduler.simulations import Simulations
from mpidata.scheduler.summary import Figures
from mpidata.scheduler.summary import Outcome as SchedulersOutcome

sys.path.insert(0, str(Path(__file__).parents[1]))
from launch_job import make_plan  # noqa: E402

_ABORT = """\
MPI_ABORT was invoked on rank 4 in communicator MPI_COMM_WORLD
  Proc: [[58517,1],1]
  Errorcode: 5
"""
_KILLED = """\
prterun noticed that process rank 2 with PID 6326 on node vm exited on
signal 9 (Killed).
"""
_PROGRESS = {
    "simulations": {"requested": 9, "running": 1, "complete": 2, "failed": 1},
    "samples": {"received": 20, "per_second": 5.0, "validation": 4, "per_trainer": [12, 8]},
    "batches": [4, 5],
    "bytes": 1500,
    "report": {"loss": 0.5},
    "training": {"loss": {"first": 4.0, "last": 0.5}},
}


class _Case:
    """A run folder that is filled as a run would."""

    def __init__(self, folder: Path) -> None:
        self.plan: Plan = make_plan(folder, {})
        self.run = RunFolder(self.plan.run)
        self.attempt = Attempt.of(self.run, self.plan)

    def fault_tolerant(self) -> None:
        """All ranks have joined, and the death of a solver is no matter."""
        self.attempt = dataclasses.replace(self.attempt, plan=dataclasses.replace(self.plan, fault_tolerance="ulfm"))
        self.run.events.write_text("start\n")

    def record(self, rank: int, ago_s: float, **more: Any) -> None:
        path = self.run.exits / f"rank-{rank:04d}"
        values = {"rank": rank, "exit": None, "signal": None, "told": False, "error": None, "joined": True, **more}
        path.write_text(json.dumps(values))
        os.utime(path, (time.time() - ago_s, time.time() - ago_s))

    def summary(self, status: str, error: str | None = None, ago_s: float = 10) -> None:
        self.run.summary.write_text(json.dumps({"status": status, "error": error}))
        os.utime(self.run.summary, (time.time() - ago_s, time.time() - ago_s))

    def settle(
        self, status: int = 0, stopped_by: int | None = None, by_batch_system: str | None = None
    ) -> tuple[int, str, str]:
        outcome = settle(self.attempt, Ending(status, stopped_by, by_batch_system=by_batch_system), 3.0)
        assert json.loads(self.run.summary.read_text()) == outcome.summary
        self.log, self.died = outcome.log, outcome.died
        return outcome.exit_status, outcome.summary["status"], outcome.summary.get("error") or ""


@pytest.fixture
def case(tmp_path: Path) -> _Case:
    return _Case(tmp_path)


@pytest.mark.parametrize(("status", "expected"), [("complete", 0), ("stopped", 0), ("failed", 1), ("nonsense", 1)])
@pytest.mark.parametrize("launcher", [0, 1, 137, -9])
def test_the_summary_decides(case: _Case, status: str, expected: int, launcher: int) -> None:
    case.summary(status)
    assert case.settle(launcher) == (expected, status, "")


@pytest.mark.parametrize("status", ["complete", "stopped"])
def test_a_record_from_before_the_summary_makes_it_failed(case: _Case, status: str) -> None:
    case.summary(status)
    case.record(5, ago_s=11, exit=3)
    code, now, error = case.settle()
    assert (code, now) == (1, "failed")
    assert error.startswith("A solver of group 1 (rank 5, number 0 of the group) ended with exit status 3. ")
    assert case.log == case.run.logs / "rank-0005-solver-1-0.log" and str(case.log) in error


def test_a_consequence_of_the_end_does_not(case: _Case) -> None:
    case.summary("complete")
    case.record(0, ago_s=9, exit=3)
    case.record(4, ago_s=11, signal=15, told=True)
    assert case.settle() == (0, "complete", "")


def test_a_bad_end_after_the_summary_counts_too(case: _Case) -> None:
    case.summary("complete")
    case.record(5, ago_s=9, exit=3)
    status, summary_status, error = case.settle()
    assert (status, summary_status) == (1, "failed") and "exit status 3" in error


def test_a_full_disk_still_shows_the_outcome(case: _Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outcome, "write_json", full)
    case.record(5, ago_s=9, exit=3)
    found = settle(case.attempt, Ending(0, None), 3.0)
    assert (found.exit_status, found.summary["status"]) == (1, "failed") and not case.run.summary.exists()
    assert "exit status 3" in found.summary["error"] and "No space left on device. Make room" in found.summary["error"]


def test_a_summary_that_the_scheduler_could_not_write(case: _Case, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"status": "complete", "error": None, "simulations": {"complete": 9}}
    found = settle(case.attempt, Ending(0, unwritten=told), 3.0)
    assert found.exit_status == 0 and json.loads(case.run.summary.read_text()) == told  # there is room again
    case.run.summary.unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outcome, "write_json", full)
    found = settle(case.attempt, Ending(0, unwritten=told), 3.0)
    assert (found.exit_status, found.summary["status"]) == (1, "failed") and not found.died
    assert found.summary["error"].startswith(f"Cannot write {case.run.summary}: No space left")
    assert found.summary["simulations"] == {"complete": 9}
    found = settle(case.attempt, Ending(0, signal.SIGTERM, unwritten=told | {"status": "stopped"}), 3.0)
    assert found.exit_status == 75 and "No space left" in found.summary["error"]


def test_the_scheduler_knows_best_why(case: _Case) -> None:
    case.summary("failed", "The field is unknown.")
    case.record(5, ago_s=11, exit=3)
    assert case.settle() == (1, "failed", "The field is unknown.")
    case.summary("failed")
    assert "exit status 3" in case.settle()[2]


def test_the_log_that_the_error_is_about_is_shown(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    log = case.run.logs / "group-0003-solver-0.log"
    log.write_text("./solver: error while loading shared libraries: libmesh.so\n")
    error = {"status": "failed", "error": "It could not be started.", "log": str(log)}
    case.run.summary.write_text(json.dumps(Figures(1, 1).summary(case.run.path, error, Simulations(1, 1), None, 1.0)))  # type: ignore[arg-type]
    outcome = settle(case.attempt, Ending(0), 3.0)
    assert outcome.log == log
    show_outcome(outcome, Console(), Console(stderr=True))
    assert capsys.readouterr().err.endswith("libraries: libmesh.so\nIt could not be started.\n")


def test_a_run_folder_that_was_removed(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.run.events.write_text("start\n")
    shutil.rmtree(case.run.path)
    outcome = settle(case.attempt, Ending(0, vanished=0), 3.0)
    assert (outcome.exit_status, outcome.died, outcome.log) == (1, False, None) and not case.run.path.exists()
    assert outcome.summary["error"].startswith(f"The run folder {case.run.path} was removed while the job ran")
    show_outcome(outcome, Console(), Console(stderr=True))
    assert capsys.readouterr().err == f"\n{outcome.summary['error']}\n"


def test_the_death_of_a_solver_is_survived(case: _Case) -> None:
    case.record(5, ago_s=11, signal=11)
    case.fault_tolerant()
    case.summary("complete")
    assert case.settle() == (0, "complete", "")
    case.record(2, ago_s=9, exit=3)
    assert case.settle()[2].startswith("Trainer 1 (rank 2) ended with exit status 3. ") and not case.died


@pytest.mark.parametrize(
    ("rank", "ago_s", "record", "summary", "died"),
    [
        (0, 11, {"signal": 9}, None, True),
        (0, 11, {"exit": 1}, None, False),
        (2, 11, {"signal": 11}, "failed", True),
        (2, 9, {"signal": 11}, "complete", False),
        (2, 9, {"signal": 11}, "failed", False),  # a consequence, for all that is known
        (2, 11, {"exit": 1}, "failed", False),
        (5, 11, {"signal": 11}, None, True),
        (5, 11, {"exit": 3}, None, True),
        (5, 11, {"signal": 9, "silent_s": 60.0}, None, True),
        (5, 11, {"exit": None, "abort": 4}, None, True),
        (5, 11, {"signal": 9, "late": True, "error": "Late.", "joined": False}, None, False),
        (5, 11, {"exit": 127, "error": "Cannot start.", "joined": False}, None, False),
    ],
)
def test_what_may_be_resumed_as_it_is(
    case: _Case, rank: int, ago_s: float, record: dict[str, Any], summary: str | None, died: bool
) -> None:
    case.record(rank, ago_s, **record)
    if summary is not None:
        case.summary(summary)
    assert case.settle()[:2] == (1, "failed") and case.died is died


def test_all_have_joined_where_that_cannot_be_written(case: _Case, tmp_path: Path) -> None:
    case.attempt.aside = tmp_path / "aside"
    case.attempt.aside.write_text("mpidata: A program ended.\n")
    assert not case.attempt.joined()
    case.attempt.aside.write_text(f"{BEGUN}\n")
    assert case.attempt.joined() and read_summary(case.attempt.aside) is None
    case.attempt.aside.unlink()
    assert case.attempt.joined()


def test_what_the_scheduler_says_of_a_death(case: _Case) -> None:
    case.summary("failed", "Trainer 1 died.")
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 1 died.", "died": True}))
    assert case.settle() == (1, "failed", "Trainer 1 died.") and case.died


@pytest.mark.parametrize(
    ("ending", "joined", "said", "died"),
    [
        (Ending(-9), True, "The launcher was killed by SIGKILL and the job with it. ", True),
        (Ending(1), True, "The launcher ended with exit status 1 and the job with it. ", True),
        (Ending(1), False, "The launcher ended with exit status 1 and the job with it. ", False),
        (Ending(0, vanished=0), True, "The scheduler (rank 0) is gone without a record: it was", True),
    ],
)
def test_the_launcher_or_the_scheduler_died(case: _Case, ending: Ending, joined: bool, said: str, died: bool) -> None:
    (case.run.logs / "rank-0000-scheduler.log").touch()
    if joined:
        case.run.events.write_text("start\n")
    found = settle(case.attempt, ending, 3.0)
    assert found.summary["error"].startswith(said) and found.died is died


@pytest.mark.parametrize("ulfm", [False, True])
def test_without_ulfm_a_launcher_kills_all_when_one_has_died(case: _Case, ulfm: bool) -> None:
    if ulfm:
        case.fault_tolerant()
    case.record(4, ago_s=2, signal=9)
    found = settle(case.attempt, Ending(9, vanished=0), 3.0)
    expected = "The scheduler (rank 0) is gone" if ulfm else "A solver of group 0 (rank 4, number 1 of the group) was"
    assert found.summary["error"].startswith(expected) and found.died


def test_only_this_start_counts(case: _Case) -> None:
    case.run.launcher_log.write_text(_KILLED)
    case.run.events.write_text("start\n")
    (case.run.logs / "rank-0000-scheduler.log").touch()
    case.attempt = Attempt.of(case.run, case.plan)
    assert not case.attempt.joined()
    assert case.settle(7)[2].startswith("The launcher ended with exit status 7 and the job with it. ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_told_to_end(case: _Case, number: int) -> None:
    assert case.settle(0, number) == (75, "stopped", "")
    assert json.loads(case.run.summary.read_text())["reason"] == signal.Signals(number).name
    case.summary("stopped")
    assert case.settle(0, number) == (75, "stopped", "")
    case.summary("complete")
    assert case.settle(0, number) == (0, "complete", "")
    case.summary("failed", "It failed.")
    assert case.settle(0, number) == (1, "failed", "It failed.")


def test_the_first_to_go_is_the_cause(case: _Case) -> None:
    case.record(0, ago_s=20, signal=15, told=True)
    case.record(3, ago_s=8, signal=11)
    case.record(1, ago_s=9, exit=1)
    assert case.settle()[2].startswith("Trainer 0 (rank 1) ended with exit status 1. ")


def test_a_spawned_rank_that_ended_first_is_the_cause(case: _Case) -> None:
    case.record(0, ago_s=3, exit=14)
    spawned = {"rank": None, "exit": 4, "signal": None, "told": False, "error": None, "joined": True}
    (case.run.exits / "group-0003-1").write_text(json.dumps(spawned))
    os.utime(case.run.exits / "group-0003-1", (time.time() - 4, time.time() - 4))
    assert case.settle()[2].startswith("A solver of the spawned group 3 ended with exit status 4. ")
    assert case.died and case.log == case.run.logs / "group-0003-solver-1.log"


def test_an_error_of_the_shim_is_the_sentence(case: _Case) -> None:
    case.record(1, ago_s=1, exit=127, error="Cannot start 'x'. It is gone. Build it.")
    assert case.settle() == (1, "failed", "Cannot start 'x'. It is gone. Build it.")


def test_out_of_memory(case: _Case) -> None:
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
def test_what_the_launcher_said(case: _Case, text: str, sentence: str) -> None:
    case.run.launcher_log.write_text(text)
    (case.run.logs / "rank-0000-scheduler.log").touch()
    case.record(3, ago_s=1, signal=15, told=True)
    assert case.settle(7)[2].startswith(sentence)


def test_no_rank_has_started(case: _Case) -> None:
    case.run.launcher_log.write_text("no room\n")
    assert case.settle(213)[2].startswith("The launcher ended with exit status 213 before any rank had started. ")
    case.run.summary.unlink()
    case.run.launcher_log.write_text("some\nmpidata: Not enough ranks. Start more.\n---\n")
    assert case.settle(1)[2] == "Not enough ranks. Start more."


def test_all_well_but_no_summary(case: _Case) -> None:
    (case.run.logs / "rank-0000-scheduler.log").touch()
    assert case.settle(0)[2].startswith("The scheduler (rank 0) ended without a summary. ")


def test_stopped_by_a_signal(case: _Case) -> None:
    case.run.progress.write_text(json.dumps(_PROGRESS))
    case.record(3, ago_s=0, exit=1)
    assert case.settle(143, signal.SIGINT) == (130, "stopped", "")
    summary = json.loads(case.run.summary.read_text())
    assert summary["reason"] == "Ctrl-C" and summary["seconds"] == 3.0
    assert summary["simulations"] == {"requested": 9, "complete": 2, "failed": 1}
    assert summary["samples"] == {"received": 20, "validation": 4, "per_trainer": [12, 8]}
    assert summary["batches"] == {"per_trainer": [4, 5]} and summary["bytes"] == 1500
    assert summary["training"] == {"loss": {"first": 4.0, "last": 0.5}}


def test_the_scheduler_s_progress_has_all_that_the_summary_needs(case: _Case) -> None:
    figures, simulations = Figures(trainers=2, capacity=8), Simulations(3, trainers=2)
    figures.report("loss", 4.0)
    figures.report("loss", 0.5)
    for trainer in range(2):
        figures.status(trainer, [10 + trainer, 1, 2, 3, 4, 5, 600])
    case.run.progress.write_text(json.dumps(figures.progress(simulations, 3.0)))
    assert case.settle(143, signal.SIGINT) == (130, "stopped", "")
    written = json.loads(case.run.summary.read_text())
    outcome: SchedulersOutcome = {"status": "stopped", "error": None, "reason": "Ctrl-C"}
    assert written == figures.summary(case.run.path, outcome, simulations, None, 3.0)


def test_stopped_before_there_was_any_progress(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = settle(case.attempt, Ending(143, signal.SIGINT), 3.0)
    assert outcome.summary["simulations"] == {"requested": 3, "complete": 0, "failed": 0}
    assert outcome.summary["samples"] == {"received": 0, "validation": 0, "per_trainer": []}
    assert outcome.summary["training"] == {} and outcome.summary["bytes"] == 0
    show_outcome(outcome, Console(), Console(stderr=True))
    assert "0 of 3 complete" in capsys.readouterr().out


def test_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert tail(path, 2) == []
    path.write_bytes(b"".join(b"line %d \xff\n" % i for i in range(10000)))
    assert tail(path, 2) == ["line 9998 \ufffd", "line 9999 \ufffd"]


def test_what_is_shown_of_a_failure(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.run.progress.write_text(json.dumps(_PROGRESS))
    case.record(1, ago_s=1, exit=1)
    case.run.log(case.plan, 1).write_text("".join(f"line {i} [bold]\n" for i in range(20)))
    outcome = settle(case.attempt, Ending(0, None), 3.0)
    show_outcome(outcome, Console(width=40), Console(stderr=True, width=40))
    stdout, stderr = capsys.readouterr()
    assert "2 of 9 complete, 1 failed" in stdout and f"  {case.run.path}\n" in stdout
    assert "  line 5 [bold]\n" in stderr and "line 4 " not in stderr
    assert stderr.endswith(f"{outcome.summary['error']}\n")


def test_what_is_shown_of_losses(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {
        "simulation": 7,
        "parameters": {"alpha": 0.5},
        "tries": 3,
        "how": "was killed by SIGSEGV",
        "output": ["oh"],
    }
    case.run.summary.write_text(json.dumps({"status": "complete"}))
    outcome = settle(case.attempt, Ending(0, None), 3.0)
    case.run.summary.unlink()
    figures = settle(case.attempt, Ending(0, signal.SIGINT), 3.0).summary
    losses = {"status": "complete", "retries": [{}, {}], "lost_groups": 1, "set_aside": [entry] * 6}
    show_outcome(dataclasses.replace(outcome, summary=figures | losses), Console(width=40), Console(stderr=True))
    stdout, stderr = capsys.readouterr()
    assert "  retries      2, 1 group lost\n" in stdout and stderr == "" and "checkpoint" not in stdout
    assert stdout.count("  simulation 7 (alpha = 0.5), 3 tries: its solver was killed by SIGSEGV\n    oh\n") == 5
    assert f"  and 1 more: see {case.run.path}/summary.json\n" in stdout


def test_from_where_a_run_can_go_on(case: _Case, capsys: pytest.CaptureFixture[str]) -> None:
    show_outcome(settle(case.attempt, Ending(0, signal.SIGTERM), 3.0), Console(), Console(stderr=True))
    assert f"none; mpidata run --resume {case.run.path} starts over\n" in capsys.readouterr().out
    (case.run.checkpoints / "000003").mkdir(parents=True)
    (case.run.checkpoints / "000004.new").mkdir()
    show_outcome(settle(case.attempt, Ending(0, signal.SIGTERM), 3.0), Console(), Console(stderr=True))
    assert f"3; go on with mpidata run --resume {case.run.path}\n" in capsys.readouterr().out


_SLURM = "Slurm ended job 41 (TimeLimit)"


@pytest.mark.parametrize("stopped_by", [None, signal.SIGTERM])
@pytest.mark.parametrize("what", ["nothing", "lost host", "killed rank", "scheduler saw a trainer die"])
def test_what_slurm_ended_is_told_as_that(case: _Case, what: str, stopped_by: int | None) -> None:
    """Whatever of the job was hit first: it is no fault of a rank or of a host."""
    if what == "lost host":
        said = "PRTE has lost communication with a remote daemon.\n\n  Remote daemon: [prterun-n1-9@0,2] on node n2\n"
        case.run.launcher_log.write_text(said)
    elif what == "killed rank":
        case.record(5, ago_s=11, signal=9)
    elif what != "nothing":
        case.summary("failed", "Trainer 0 (rank 1) was killed by SIGTERM.")
        whole = {**json.loads(case.run.summary.read_text()), "died": True}
        case.run.summary.write_text(json.dumps(whole))
        case.record(1, ago_s=11, signal=15)
    assert case.settle(137, stopped_by, _SLURM) == (75, "stopped", "")
    summary = json.loads(case.run.summary.read_text())
    assert summary["reason"] == _SLURM and "died" not in summary and not case.died


def test_a_fault_before_slurm_ended_the_job_stays_one(case: _Case) -> None:
    case.summary("failed", "Undeclared field 'v'.")
    assert case.settle(1, None, _SLURM) == (1, "failed", "Undeclared field 'v'.")
    case.summary("complete")
    assert case.settle(0, signal.SIGTERM, _SLURM) == (0, "complete", "")


def test_sigterm_to_all_ranks_is_a_stop_without_slurm_too(case: _Case) -> None:
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 0 was killed.", "died": True}))
    assert case.settle(1, signal.SIGTERM) == (75, "stopped", "")
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 0 was killed.", "died": True}))
    assert case.settle(1, signal.SIGUSR1) == (1, "failed", "Trainer 0 was killed.")
