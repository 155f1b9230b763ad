"""How a run ended, from what it left in its folder."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from ended_run import EndedRun

from mpidata.launch.watching import outcome
from mpidata.launch.watching.outcome import settle
from mpidata.launch.watching.supervise import LauncherEnd
from mpidata.run.side_channel import STARTED, read_summary
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.simulations import Simulations

_PROGRESS = {
    "simulations": {"requested": 9, "running": 1, "complete": 2, "failed": 1},
    "samples": {"received": 20, "per_second": 5.0, "validation": 4, "per_trainer": [12, 8]},
    "batches": [4, 5],
    "bytes": 1500,
    "report": {"loss": 0.5},
    "training": {"loss": {"first": 4.0, "last": 0.5}},
}
_SLURM = "Slurm ended job 41 (TimeLimit)"


@pytest.mark.parametrize(("status", "expected"), [("complete", 0), ("stopped", 0), ("failed", 1), ("nonsense", 1)])
@pytest.mark.parametrize("launcher", [0, 1, 137, -9])
def test_summary_status_decides_the_exit_status(case: EndedRun, status: str, expected: int, launcher: int) -> None:
    case.summary(status)
    assert case.settle(launcher) == (expected, status, "")


@pytest.mark.parametrize("status", ["complete", "stopped"])
def test_exit_note_from_before_the_summary_fails_the_run(case: EndedRun, status: str) -> None:
    case.summary(status)
    case.record(5, ago_s=11, exit=3)
    code, now, error = case.settle()
    assert (code, now) == (1, "failed")
    assert error.startswith("A solver of group 1 (rank 5, number 0 of the group) ended with exit status 3. ")
    assert case.log == case.run.logs / "rank-0005-solver-1-0.log" and str(case.log) in error


def test_exit_notes_caused_by_the_end_do_not_fail_the_run(case: EndedRun) -> None:
    case.summary("complete")
    case.record(0, ago_s=9, exit=3)
    case.record(4, ago_s=11, signal=15, told=True)
    assert case.settle() == (0, "complete", "")


def test_nonzero_exit_after_the_summary_fails_the_run(case: EndedRun) -> None:
    case.summary("complete")
    case.record(5, ago_s=9, exit=3)
    status, summary_status, error = case.settle()
    assert (status, summary_status) == (1, "failed") and "exit status 3" in error
    assert error.endswith(
        "The training was complete: what the script does after it, such as saving a model, may be missing."
    )
    case.summary("stopped")
    assert "complete" not in case.settle()[2]


def test_outcome_is_reported_despite_a_full_disk(case: EndedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outcome, "write_json", full)
    case.record(5, ago_s=9, exit=3)
    found = settle(case.attempt, LauncherEnd(0, None), 3.0)
    assert (found.exit_status, found.summary["status"]) == (1, "failed") and not case.run.summary.exists()
    assert "exit status 3" in found.summary["error"] and "No space left on device. Make room" in found.summary["error"]


def test_unwritten_summary_of_the_scheduler_is_written_or_reported(
    case: EndedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"status": "complete", "error": None, "simulations": {"complete": 9}}
    found = settle(case.attempt, LauncherEnd(0, unwritten=told), 3.0)
    assert found.exit_status == 0 and json.loads(case.run.summary.read_text()) == told  # the disk has space again
    case.run.summary.unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outcome, "write_json", full)
    found = settle(case.attempt, LauncherEnd(0, unwritten=told), 3.0)
    assert (found.exit_status, found.summary["status"]) == (1, "failed") and not found.died
    assert found.summary["error"].startswith(f"Cannot write {case.run.summary}: No space left")
    assert found.summary["simulations"] == {"complete": 9}
    found = settle(case.attempt, LauncherEnd(0, signal.SIGTERM, unwritten=told | {"status": "stopped"}), 3.0)
    assert found.exit_status == 75 and "No space left" in found.summary["error"]


def test_death_of_a_solver_does_not_fail_a_fault_tolerant_run(case: EndedRun) -> None:
    case.record(5, ago_s=11, signal=11)
    case.fault_tolerant()
    case.summary("complete")
    assert case.settle() == (0, "complete", "")
    case.record(2, ago_s=9, exit=3)
    assert case.settle()[2].startswith("Trainer 1 (rank 2) ended with exit status 3. ") and not case.died


@pytest.mark.parametrize("scheduler", ["ended", "died"])
@pytest.mark.parametrize(("joined_ago_s", "early"), [(8.0, True), (12.0, False), (60.0, False)])
def test_launcher_that_ends_after_a_death_before_all_had_joined_ends_for_that(
    case: EndedRun, joined_ago_s: float, early: bool, scheduler: str
) -> None:
    """Open MPI does not survive a death during the others' MPI_Init; the scheduler may notice it a moment before."""
    case.fault_tolerant()
    case.joined(joined_ago_s)
    case.record(2, ago_s=10 if joined_ago_s < 20 else 70, signal=9)
    case.record(5, ago_s=5, signal=15, told=True)
    case.run.progress.write_text(json.dumps({"trainers": ["alive", "dead"]}))
    (case.run.logs / "rank-0002-trainer-1.log").touch()
    if scheduler == "died":
        case.record(0, ago_s=6, signal=9)
    status, _, error = case.settle(1)
    who = "The scheduler (rank 0)" if scheduler == "died" else "Trainer 1 (rank 2)" if early else "The launcher ended"
    assert status == 1 and error.startswith(who) and case.died
    assert case.early == (early and scheduler == "ended")


@pytest.mark.parametrize("scheduler", ["ended", "died"])
@pytest.mark.parametrize("note", [{"signal": 11}, {"exit": 3}])
def test_death_of_a_trainer_does_not_fail_the_run_if_the_others_continued(
    case: EndedRun, scheduler: str, note: dict[str, int]
) -> None:
    case.record(2, ago_s=30, **note)
    case.fault_tolerant()
    case.summary("complete")
    assert case.settle()[2].startswith("Trainer 1 (rank 2) ")
    case.summary("complete")
    case.run.progress.write_text(json.dumps(_PROGRESS | {"lost_trainers": [0, 1], "trainers": ["trains", "dead"]}))
    if scheduler == "ended":
        assert case.settle() == (0, "complete", "")
        return
    case.run.summary.unlink()
    case.record(0, ago_s=11, signal=9)
    status, _, error = case.settle(137)
    assert status == 1 and error.startswith("The scheduler (rank 0) was killed by SIGKILL") and case.died
    assert json.loads(case.run.summary.read_text())["lost_trainers"] == [0, 1]


def test_death_of_a_trainer_not_listed_as_dead_fails_the_run(case: EndedRun) -> None:
    case.record(1, ago_s=30, signal=11)
    case.record(2, ago_s=20, exit=3)
    case.fault_tolerant()
    case.summary("complete")
    case.run.progress.write_text(json.dumps(_PROGRESS | {"lost_trainers": [1, 0], "trainers": ["dead", "trains"]}))
    assert case.settle()[2].startswith("Trainer 1 (rank 2) ended with exit status 3. ")


def test_joined_ranks_are_noticed_if_the_event_log_cannot_be_written(case: EndedRun, tmp_path: Path) -> None:
    case.attempt.aside = tmp_path / "aside"
    case.attempt.aside.write_text("mpidata: A program ended.\n")
    assert not case.attempt.joined()
    case.attempt.aside.write_text(f"{STARTED}\n")
    assert case.attempt.joined() and read_summary(case.attempt.aside) is None
    case.attempt.aside.unlink()
    assert case.attempt.joined()


def test_missing_summary_fails_the_run(case: EndedRun) -> None:
    (case.run.logs / "rank-0000-scheduler.log").touch()
    assert case.settle(0)[2].startswith("The scheduler (rank 0) ended without a summary. ")


def test_stopped_run_gets_a_summary_from_its_progress(case: EndedRun) -> None:
    case.run.progress.write_text(json.dumps(_PROGRESS))
    case.record(3, ago_s=0, exit=1)
    assert case.settle(143, signal.SIGINT) == (130, "stopped", "")
    summary = json.loads(case.run.summary.read_text())
    assert summary["reason"] == "Ctrl-C" and summary["seconds"] == 3.0
    assert summary["simulations"] == {"requested": 9, "complete": 2, "failed": 1}
    assert summary["samples"] == {"received": 20, "validation": 4, "per_trainer": [12, 8]}
    assert summary["batches"] == {"per_trainer": [4, 5]} and summary["bytes"] == 1500
    assert summary["training"] == {"loss": {"first": 4.0, "last": 0.5}}


def test_scheduler_progress_contains_all_that_the_summary_needs(case: EndedRun) -> None:
    figures, simulations = Figures(trainers=2, capacity=8), Simulations(3, trainers=2)
    figures.report("loss", 4.0)
    figures.report("loss", 0.5)
    figures.lost_trainers.append(1)
    figures.earlier = {"joined_trainers": [1]}
    for trainer in range(2):
        figures.status(trainer, [10 + trainer, 1, 2, 3, 4, 5, 600, 7])
    case.run.progress.write_text(json.dumps(figures.progress(simulations, 3.0)))
    assert case.settle(143, signal.SIGINT) == (130, "stopped", "")
    written = json.loads(case.run.summary.read_text())
    outcome: Conclusion = {"status": "stopped", "error": None, "reason": "Ctrl-C"}
    assert written == figures.summary(case.run.path, outcome, simulations, None, 3.0)


@pytest.mark.parametrize("stopped_by", [None, signal.SIGTERM])
@pytest.mark.parametrize("what", ["nothing", "lost host", "killed rank", "scheduler saw a trainer die"])
def test_end_by_slurm_is_reported_as_the_reason(case: EndedRun, what: str, stopped_by: int | None) -> None:
    """Whatever part of the job Slurm ended first, no rank or host is blamed."""
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


def test_failure_or_completion_before_the_end_by_slurm_is_kept(case: EndedRun) -> None:
    case.summary("failed", "Undeclared field 'v'.")
    assert case.settle(1, None, _SLURM) == (1, "failed", "Undeclared field 'v'.")
    case.summary("complete")
    assert case.settle(0, signal.SIGTERM, _SLURM) == (0, "complete", "")


def test_sigterm_to_all_ranks_counts_as_a_stop_without_slurm(case: EndedRun) -> None:
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 0 was killed.", "died": True}))
    assert case.settle(1, signal.SIGTERM) == (75, "stopped", "")
    case.run.summary.write_text(json.dumps({"status": "failed", "error": "Trainer 0 was killed.", "died": True}))
    assert case.settle(1, signal.SIGUSR1) == (1, "failed", "Trainer 0 was killed.")


def test_removed_temporary_folder_is_reported_as_the_cause(case: EndedRun, tmp_path: Path) -> None:
    case.summary("failed")
    end = LauncherEnd(1, cleaned=tmp_path / "tmp" / "mpidata-0-x")
    said = f"The folder for the temporary files of this job, {tmp_path}/tmp/mpidata-0-x, was removed while it ran, "
    error = settle(case.attempt, end, 1.0).summary["error"]
    assert error == f"{said}for example by a cleanup of {tmp_path}/tmp. Set TMPDIR to a folder that is not cleaned."
    assert json.loads(case.run.summary.read_text())["error"] == error
    case.summary("complete")
    assert settle(case.attempt, end, 1.0).summary["status"] == "complete"
