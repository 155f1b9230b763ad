"""What is shown at the end of a run."""

import dataclasses
import json
import shutil
import signal

import pytest
from ended_run import EndedRun
from rich.console import Console

from mpidata.launch.watching.outcome import settle
from mpidata.launch.watching.result import show_outcome
from mpidata.launch.watching.supervise import LauncherEnd
from mpidata.run.rank_files import PlannedRun
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


def test_log_named_by_the_summary_is_shown(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    log = case.run.logs / "group-0003-solver-0.log"
    log.write_text("./solver: error while loading shared libraries: libmesh.so\n")
    error = {"status": "failed", "error": "It could not be started.", "log": str(log)}
    case.run.summary.write_text(json.dumps(Figures(1, 1).summary(case.run.path, error, Simulations(1, 1), None, 1.0)))  # type: ignore[arg-type]
    outcome = settle(case.attempt, LauncherEnd(0), 3.0)
    assert outcome.log == log
    show_outcome(outcome, Console(), Console(stderr=True))
    assert capsys.readouterr().err.endswith("libraries: libmesh.so\nIt could not be started.\n")


def test_failure_shows_figures_last_log_lines_and_the_error(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    case.run.progress.write_text(json.dumps(_PROGRESS))
    case.record(1, ago_s=1, exit=1)
    PlannedRun(case.run, case.plan).log(1).write_text("".join(f"line {i} [bold]\n" for i in range(20)))
    outcome = settle(case.attempt, LauncherEnd(0, None), 3.0)
    show_outcome(outcome, Console(width=40), Console(stderr=True, width=40))
    stdout, stderr = capsys.readouterr()
    assert "2 of 9 complete, 1 failed" in stdout and f"  {case.run.path}\n" in stdout
    assert "  line 5 [bold]\n" in stderr and "line 4 " not in stderr
    assert stderr.endswith(f"{outcome.summary['error']}\n")


def test_a_trainer_without_samples_is_named(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    nothing: dict[str, object] = {"batches": {"per_trainer": [0, 0]}}
    nothing["samples"] = {"received": 7, "validation": 0, "per_trainer": [0, 7]}
    simulations = {"requested": 9, "complete": 9, "failed": 0, "short": 4}
    nothing |= {"simulations": simulations, "seconds": 1.0, "bytes": 0, "training": {}, "name": "job"}
    case.run.summary.write_text(json.dumps({"status": "complete", "run": str(case.run.path), **nothing}))
    show_outcome(settle(case.attempt, LauncherEnd(0, None), 3.0), Console(width=200), Console(stderr=True))
    shown = capsys.readouterr().out
    assert "no samples   for trainer 0: no batch" in shown and "too short    4 simulations" in shown


def test_retries_lost_groups_and_set_aside_simulations_are_shown(
    case: EndedRun, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {
        "simulation": 7,
        "parameters": {"alpha": 0.5},
        "tries": 3,
        "how": "was killed by SIGSEGV",
        "output": ["oh"],
    }
    case.run.summary.write_text(json.dumps({"status": "complete"}))
    outcome = settle(case.attempt, LauncherEnd(0, None), 3.0)
    case.run.summary.unlink()
    figures = settle(case.attempt, LauncherEnd(0, signal.SIGINT), 3.0).summary
    losses = {"status": "complete", "retries": [{}, {}], "lost_groups": 1, "set_aside": [entry] * 6}
    show_outcome(dataclasses.replace(outcome, summary=figures | losses), Console(width=40), Console(stderr=True))
    stdout, stderr = capsys.readouterr()
    assert "  retries      2, 1 group lost\n" in stdout and stderr == "" and "checkpoint" not in stdout
    assert stdout.count("  simulation 7 (alpha = 0.5), 3 tries: its solver was killed by SIGSEGV\n    oh\n") == 5
    assert f"  and 1 more: see {case.run.path}/summary.json\n" in stdout


def test_a_job_without_solvers_shows_its_loaders(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures(1, 1)
    figures.loaders.update(joined=3, lost=1)
    for simulations, shown in ((0, False), (2, True)):
        summary = figures.summary(
            case.run.path,
            {"status": "complete", "error": None, "reason": None},
            Simulations(simulations, 1),
            None,
            1.5,
        )
        case.run.summary.write_text(json.dumps(summary))
        show_outcome(settle(case.attempt, LauncherEnd(0), 3.0), Console(), Console(stderr=True))
        words = capsys.readouterr().out.split()
        assert " ".join(words).count("loaders 3 joined, 1 lost") == 1 and ("samples" in words) == shown


def test_lost_joined_and_retired_trainers_are_shown(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    lost_one = "trainer 2 lost, and the others went on"
    for lost, joined, shown in (
        ([2, 0, 1], [], "trainers 2, 0, 1 lost"),
        ([], [], ""),
        ([2], [], lost_one),
        ([2, 0], [], "trainers 2, 0 lost, and the others went on"),
        ([2], [3], f"{lost_one}; spare 3 took a place"),
        ([0, 2, 0], [3, 3], "trainers 0 (2 times), 2 lost, and the others went on; spare 3 (2 times) took a place"),
        ([], [3, 4], "spares 3, 4 took a place"),
        ([], [2], "spare 2 took a place; 2 left by mpidata scale"),
    ):
        figures = Figures(3, 1)
        figures.loaders.update(joined=1, lost=0)
        figures.lost_trainers.extend(lost)
        figures.joined_trainers.extend(joined)
        figures.retired_trainers.extend([2] if "scale" in shown else [])
        status = "failed" if len({*lost}) == 3 else "complete"
        conclusion: Conclusion = {"status": status, "error": None, "reason": None}
        case.run.summary.write_text(
            json.dumps(figures.summary(case.run.path, conclusion, Simulations(0, 3), None, 1.5))
        )
        show_outcome(settle(case.attempt, LauncherEnd(0), 3.0), Console(), Console(stderr=True))
        rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
        assert [row[1] for row in rows if row and row[0] == "trainers"] == [shown] * bool(shown)


def test_checkpoint_to_resume_from_is_shown(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    show_outcome(settle(case.attempt, LauncherEnd(0, signal.SIGTERM), 3.0), Console(), Console(stderr=True))
    assert f"none; mpidata run --resume {case.run.path} starts over\n" in capsys.readouterr().out
    (case.run.checkpoints / "000003").mkdir(parents=True)
    (case.run.checkpoints / "000004.new").mkdir()
    show_outcome(settle(case.attempt, LauncherEnd(0, signal.SIGTERM), 3.0), Console(), Console(stderr=True))
    assert f"3; resume with mpidata run --resume {case.run.path}\n" in capsys.readouterr().out


def test_run_stopped_before_any_progress_shows_zeros(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = settle(case.attempt, LauncherEnd(143, signal.SIGINT), 3.0)
    assert outcome.summary["simulations"] == {"requested": 3, "complete": 0, "failed": 0}
    assert outcome.summary["samples"] == {"received": 0, "validation": 0, "per_trainer": []}
    assert outcome.summary["training"] == {} and outcome.summary["bytes"] == 0
    show_outcome(outcome, Console(), Console(stderr=True))
    assert "0 of 3 complete" in capsys.readouterr().out


def test_removed_run_folder_is_reported(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    case.run.events.write_text("start\n")
    shutil.rmtree(case.run.path)
    outcome = settle(case.attempt, LauncherEnd(0, vanished=0), 3.0)
    assert (outcome.exit_status, outcome.died, outcome.log) == (1, False, None) and not case.run.path.exists()
    assert outcome.summary["error"].startswith(f"The run folder {case.run.path} was removed while the job ran")
    show_outcome(outcome, Console(), Console(stderr=True))
    shown = capsys.readouterr()
    assert shown.err == f"\n{outcome.summary['error']}\n"
    assert str(case.run.path) not in shown.out  # no hint names the removed folder


def test_samples_of_trainers_that_drew_nothing_are_counted(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures(3, 1)
    for taken in (5.0, 7.0):  # from two trainers
        figures.report("handed.over", taken)
    complete: Conclusion = {"status": "complete", "error": None, "reason": None}
    summary = figures.summary(case.run.path, complete, Simulations(1, 1), None, 1.0)
    assert summary["samples"]["handed_over"] == 12  # type: ignore[index]
    case.run.summary.write_text(json.dumps(summary))
    show_outcome(settle(case.attempt, LauncherEnd(0, None), 3.0), Console(width=200), Console(stderr=True))
    assert "0 for training, 0/s, 12 of trainers that drew nothing, 0 for validation" in capsys.readouterr().out


def test_a_stopped_job_without_solvers_shows_no_simulations(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    progress = {**_PROGRESS, "simulations": {"requested": 0, "complete": 0, "failed": 0}}
    case.run.progress.write_text(json.dumps(progress))
    show_outcome(settle(case.attempt, LauncherEnd(143, signal.SIGINT), 3.0), Console(), Console(stderr=True))
    shown = capsys.readouterr().out
    assert "time " in shown and "simulations" not in shown and "samples" not in shown, shown


def test_servers_and_untrained_rows_are_shown(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures(2, 1)
    figures.servers, figures.pushes = 2, {0: 30, 1: 12}
    for trainer, name, value in ((0, "epoch", 0.0), (1, "untrained", 34.0)):
        figures.loaded.take(trainer, name, value)
    stopped: Conclusion = {"status": "stopped", "error": None, "reason": "trainer 1 left the job"}
    case.run.summary.write_text(json.dumps(figures.summary(case.run.path, stopped, Simulations(0, 1), None, 1.0)))
    show_outcome(settle(case.attempt, LauncherEnd(0), 3.0), Console(width=200), Console(stderr=True))
    shown = capsys.readouterr().out
    assert "stopped (trainer 1 left the job)" in shown and "2, 42 pushes" in shown, shown
    assert "not trained on  34 rows, which a trainer left in the middle of an epoch" in shown, shown


def test_open_mpi_messages_about_a_death_are_not_shown(case: EndedRun, capsys: pytest.CaptureFixture[str]) -> None:
    case.record(1, ago_s=1, exit=1)
    noise = "[host:1] NBC_Progress: an error 75 was found during schedule\n"
    PlannedRun(case.run, case.plan).log(1).write_text("".join(f"line {i}\n{noise}" for i in range(20)))
    show_outcome(settle(case.attempt, LauncherEnd(0, None), 3.0), Console(), Console(stderr=True))
    shown = capsys.readouterr().err
    assert "NBC_Progress" not in shown and "  line 5\n" in shown and "line 4\n" not in shown, shown
