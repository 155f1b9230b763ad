import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpidata.errors import MpidataError, RankDiedError
from mpidata.native.event import Error, Held, Next, Status, Stop
from mpidata.run import deadlines, event_log
from mpidata.run.folder import RunFolder
from mpidata.run.rank_files import PlannedRun
from mpidata.run.side_channel import ASIDE, STARTED, read_summary
from mpidata.scheduler import __main__ as rank_zero

MakeJob = Callable[..., Any]


def test_an_error_ends_the_job_soon(make_job: MakeJob) -> None:
    job = make_job(simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Error, 0, after=5.0, text="Field 'u' has shape (3,). Rank 2, simulation 0, step 1. Send (4,).")
    assert job.run() == 1
    assert job.summary["status"] == "failed"
    assert job.summary["error"] == "Field 'u' has shape (3,). Rank 2, simulation 0, step 1. Send (4,)."
    assert job.summary["log"] == str(job.plan.run / "logs" / "rank-0002-solver-0-0.log")
    assert job.now <= 1005.5
    assert job.calls[-1] == ("abort", 1)


def test_summary_names_the_log_of_the_rank_with_the_first_error(make_job: MakeJob) -> None:
    job = make_job(trainers=2, start="spawn", groups=1, ranks_per_group=2, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    job.event(Error, 7, rank=4, text="It is broken.")
    job.event(Error, 0, after=0.1, rank=3, text="This follows.")
    assert job.run() == 1 and job.summary["error"] == "It is broken."
    assert job.summary["log"] == str(job.plan.run / "logs" / "group-0007-solver-1.log")


def test_first_error_is_in_the_summary_and_all_errors_are_in_the_events(make_job: MakeJob) -> None:
    job = make_job(groups=4, simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    for group in range(4):
        job.event(Error, group, after=1.0 + 0.05 * group, text=f"error {group}")
    assert job.run() == 1
    assert job.summary["error"] == "error 0"
    assert [event["error"] for event in job.events("error")] == [f"error {group}" for group in range(4)]


def test_error_after_a_stop_fails_the_job(make_job: MakeJob) -> None:
    job = make_job(trainers=2, groups=1, simulations=100)
    job.before |= {"stop": lambda: False, "dispatch": lambda group, simulation: False}
    job.event(Stop, 0)
    job.event(Error, 0, after=1.0, text="broken")
    assert job.run() == 1
    assert job.summary["status"] == "failed" and job.summary["error"] == "broken" and job.now <= 1002


@pytest.mark.parametrize(
    "event, words",
    [
        ({"kind": Next, "index": 9}, "There is no group 9"),
        ({"kind": Status, "index": -1}, "as number -1 of 1"),
        ({"kind": Next, "simulation": 2}, "Group 0 closed simulation 2"),
        ({"kind": Next, "index": -1}, "There is no group -1"),
        ({"kind": Held, "simulation": 0, "by_try": 1}, "Trainer 0 holds all of try 1 of simulation 0, which has"),
        ({"kind": Held, "simulation": 3, "by_try": 1}, "Trainer 0 holds simulation 3 of 3"),
    ],
)
def test_invalid_message_ends_the_job(make_job: MakeJob, event: dict[str, Any], words: str) -> None:
    job = make_job()
    job.event(**event)
    assert job.run() == 1
    assert job.summary["status"] == "failed" and words in job.summary["error"]


def test_an_unexpected_exception_ends_the_job(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()

    def expect(simulation: int, steps: int) -> bool:
        raise KeyError("lost")

    job.before["expect"] = expect
    assert job.run() == 1
    assert "KeyError: 'lost'" in job.summary["error"]
    assert "Traceback" in capsys.readouterr().err


def test_unwritable_summary_is_sent_through_the_side_channel(
    make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, aside = make_job(), tmp_path / "aside"
    aside.touch()
    monkeypatch.setenv(ASIDE, str(aside))
    job.before["all_gone"] = lambda: (job.plan.run / "summary.json").mkdir()
    assert job.run() == 0
    lines = aside.read_text().splitlines()
    assert len(lines) == 2 and lines[0].startswith(f"mpidata: {job.plan.run} cannot be written: Is a directory.")
    told = read_summary(aside)
    assert told is not None and told["status"] == "complete" and told["simulations"]["complete"] == 3


def test_unwritable_event_log_reports_the_start_through_the_side_channel(
    make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, aside = make_job(), tmp_path / "aside"
    aside.touch()
    monkeypatch.setenv(ASIDE, str(aside))
    (job.plan.run / "events.jsonl").mkdir()
    assert job.run() == 0
    assert aside.read_text().splitlines()[0] == STARTED and read_summary(aside) is None


def test_removed_run_folder_is_reported_as_removed(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    job.before["all_gone"] = lambda: shutil.rmtree(job.plan.run)
    assert job.run() == 0
    assert capsys.readouterr().err.startswith(f"mpidata: {job.plan.run} was removed while the job runs.\n")


def test_write_errors_in_the_run_folder_do_not_end_the_job(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job()
    write, failing = event_log.os.write, []

    def fail(descriptor: int, data: bytearray) -> int:
        if len(failing) < 4:
            failing.append(1)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return write(descriptor, data)

    monkeypatch.setattr(event_log.os, "write", fail)
    assert job.run() == 0
    assert job.summary["status"] == "complete"
    names = [event["event"] for event in job.events()]
    assert names[0] == "start" and "disk_failed" in names and names[-1] == "end"
    assert capsys.readouterr().err.count("cannot be written: Input/output error") == 1


def test_error_in_the_last_message_fails_the_job(make_job: MakeJob) -> None:
    job = make_job()

    def all_gone() -> bool:
        raise MpidataError("MPI failed.")

    job.before["all_gone"] = all_gone
    assert job.run() == 1
    assert job.summary["status"] == "failed" and job.summary["error"] == "MPI failed."
    assert "died" not in job.summary


def run_main(job: Any, monkeypatch: pytest.MonkeyPatch, joining: Callable[[Path], None]) -> Path:
    """Run the scheduler's program, which joins by `joining`; it must end by itself, without an exception."""
    run = job.plan.run
    (run / "private").mkdir()
    PlannedRun(RunFolder(run), job.plan).write_plan()
    (run / "exits").mkdir(exist_ok=True)

    class Messages:
        def __init__(self, plan: object) -> None: ...

        def open(self) -> None:
            joining(run)

        def abort(self, status: int) -> None: ...

    def end(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setenv("MPIDATA_RUN", str(run))
    monkeypatch.setattr(rank_zero, "LibraryMessages", Messages)
    monkeypatch.setattr(rank_zero, "read_parameters", lambda *_: (job.parameters, None))
    monkeypatch.setattr(deadlines, "WHY_LOST_IN_START_S", 0.05)
    monkeypatch.setattr(rank_zero.signal, "signal", lambda *_: None)
    monkeypatch.setattr(rank_zero.os, "_exit", end)
    with pytest.raises(SystemExit):
        rank_zero.main()
    assert (run / "over").exists()
    return run / "summary.json"


@pytest.mark.parametrize("recorded", [True, False])
def test_death_while_joining_gets_a_summary_only_without_an_exit_note(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    def joining(run: Path) -> None:
        if recorded:
            record = {"rank": 2, "exit": None, "signal": 11, "joined": False, "told": False, "error": None}
            (run / "exits" / "rank-0002").write_text(json.dumps(record))
        raise RankDiedError("MPI call failed: MPI_Test: MPI_ERR_PROC_FAILED.")

    assert run_main(make_job(), monkeypatch, joining).exists() is not recorded


UNFORESEEN = {
    "ours": (KeyError("u"), "KeyError: 'u'. This is a bug in mpidata: report it with the log of rank 0."),
    "of the installation": (
        ImportError("no module"),
        "ImportError: no module. Reinstall mpidata and its dependencies for the Python that runs it.",
    ),
    "of its memory": (MemoryError(), "MemoryError: MemoryError. Give its host more memory."),
}


@pytest.mark.parametrize("whose", UNFORESEEN)
def test_scheduler_error_during_startup_ends_the_job(
    whose: str, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug report is requested only if mpidata is at fault."""
    error, sentence = UNFORESEEN[whose]

    def joining(run: Path) -> None:
        raise error

    summary = json.loads(run_main(make_job(), monkeypatch, joining).read_text())
    assert summary["error"] == f"The scheduler failed with {sentence}"
    assert "Traceback" in capsys.readouterr().err


def test_full_disk_and_recovery_are_reported_once_each_time(
    make_job: MakeJob, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(simulations=100)
    job.before["dispatch"] = lambda group, simulation: False
    full = [(1000.0, 1010.0), (1011.0, 1012.0), (1030.0, 1031.0)]
    write = event_log.write_json

    def write_json(path: Path, value: object, durable: bool = False) -> None:
        if path.name == "progress.json" and any(begin <= job.now < end for begin, end in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, value, durable)

    monkeypatch.setattr("mpidata.scheduler.figures.run_output.write_json", write_json)
    for second in range(60):
        job.event(Status, 0, after=float(second))
    job.event(Error, 0, after=60.0, text="enough")
    job.run()
    said = [line for line in capsys.readouterr().err.splitlines() if "written" in line]
    assert ["again" in line.rpartition(" be ")[2] and "cannot" not in line for line in said] == [
        False,
        True,
        False,
        True,
    ], said
