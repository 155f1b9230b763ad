import json
from pathlib import Path

import pytest
from fake_library import make_plan

from mpidata.scheduler.__main__ import write_failure
from mpidata.scheduler.deaths.lost_groups import Cause, Losses
from mpidata.scheduler.figures.summary import (
    BYTES,
    DRAWN,
    DUPLICATES,
    FILL,
    RECEIVED,
    VALIDATION,
    WINDOWS,
    Conclusion,
    Figures,
)
from mpidata.scheduler.simulations import Simulations

COMPLETE: Conclusion = {"status": "complete", "error": None, "reason": None}


def statistics(**values: int) -> list[int]:
    places = {"received": RECEIVED, "validation": VALIDATION, "duplicates": DUPLICATES, "drawn": DRAWN}
    places |= {"fill": FILL, "bytes": BYTES, "windows": WINDOWS}
    row = [0] * 8
    for name, value in values.items():
        row[places[name]] = value
    return row


def some_simulations() -> Simulations:
    simulations = Simulations(5, trainers=2)
    for group in range(3):
        simulations.take(group)
    simulations.close(0, 0, steps=4, failed=False)
    simulations.close(1, 1, steps=4, failed=True)
    for trainer in range(2):
        simulations.hold(trainer, 0, 1)
    return simulations


def some_figures() -> Figures:
    figures = Figures(trainers=2, capacity=20)
    figures.status(0, statistics(received=30, validation=2, drawn=3, fill=5, bytes=1000))
    figures.status(1, statistics(received=10, validation=1, drawn=3, fill=30, bytes=500, duplicates=4))
    figures.report("loss", 4.0)
    figures.report("other", 1.0)
    figures.report("loss", 0.5)
    return figures


def test_summary_has_exactly_these_keys() -> None:
    losses = Losses(make_plan())
    losses.groups = 2
    losses.retry(1, 1, 0, Cause("exit", "ended with exit status 3", 0, status=3))
    losses.give_up(1, 2, 1, Cause("signal", "was killed by SIGSEGV", 1, signal=11, output=["last", "words"]), [0.5, 2])
    summary = some_figures().summary(Path("/runs/heat2d/3"), COMPLETE, some_simulations(), losses, seconds=12.34567)
    assert summary == {
        "name": "heat2d",
        "run": "/runs/heat2d/3",
        "status": "complete",
        "error": None,
        "reason": None,
        "simulations": {"requested": 5, "complete": 1, "failed": 1},
        "lost_groups": 2,
        "retries": [
            {
                "simulation": 1,
                "try": 1,
                "group": 0,
                "cause": "exit",
                "how": "ended with exit status 3",
                "signal": None,
                "exit": 3,
            }
        ],
        "set_aside": [
            {
                "simulation": 1,
                "parameters": {"alpha": 0.5, "beta": 2},
                "tries": 2,
                "group": 1,
                "cause": "signal",
                "how": "was killed by SIGSEGV",
                "signal": 11,
                "exit": None,
                "output": ["last", "words"],
            }
        ],
        "samples": {"received": 40, "validation": 3, "per_trainer": [30, 10]},
        "batches": {"per_trainer": [3, 3]},
        "bytes": 1500,
        "seconds": 12.346,
        "training": {"loss": {"first": 4.0, "last": 0.5}, "other": {"first": 1.0, "last": 1.0}},
    }


def test_progress_has_exactly_these_keys() -> None:
    assert some_figures().progress(some_simulations(), seconds=2.0) == {
        "simulations": {"requested": 5, "running": 1, "complete": 1, "failed": 1},
        "samples": {"received": 40, "per_second": 20.0, "validation": 3, "per_trainer": [30, 10]},
        "trainers": ["trains", "trains"],
        "batches": [3, 3],
        "fill": [0.25, 1.5],
        "capacity": 20,
        "capacity_in_bytes": False,
        "present": [0, 0],
        "bytes": 1500,
        "report": {"loss": 0.5, "other": 1.0},
        "training": {"loss": {"first": 4.0, "last": 0.5}, "other": {"first": 1.0, "last": 1.0}},
        "seconds": 2.0,
    }


def test_samples_per_second_are_averaged_over_the_last_seconds() -> None:
    figures = Figures(trainers=1, capacity=10)
    simulations = Simulations(1, trainers=1)
    rates = []
    for tick in range(40):
        seconds = tick / 2
        figures.status(0, statistics(received=min(1000, int(100 * seconds))))
        progress = figures.progress(simulations, seconds)
        rates.append(json.loads(json.dumps(progress))["samples"]["per_second"])
    assert rates[0] == 0
    assert rates[1:21] == [100.0] * 20
    assert rates[30:] == [0.0] * 10


def test_progress_shows_an_empty_buffer_for_trainers_that_died_or_left() -> None:
    figures, simulations = Figures(trainers=4, capacity=10), Simulations(1, trainers=4)
    figures.spares = 2
    assert figures.progress(simulations, 1.0)["trainers"] == ["trains", "trains", "spare", "spare"]
    figures.lost_trainers += [0, 3]
    figures.joined_trainers.append(2)
    figures.retired_trainers.append(1)
    for trainer in range(4):
        figures.status(trainer, statistics(fill=5, drawn=3, windows=7))
    progress = figures.progress(simulations, 1.0)
    assert progress["trainers"] == ["dead", "left", "trains", "dead"] and progress["batches"] == [3] * 4
    assert progress["fill"] == figures.metrics(simulations, 1.0)["fill"] == [0.0, 0.0, 0.5, 0.0]
    assert progress["present"] == [0, 0, 7, 0]


def test_status_stores_a_copy_of_the_statistics() -> None:
    figures = Figures(trainers=1, capacity=10)
    row = statistics(received=5)
    assert figures.status(0, row)[RECEIVED] == 5
    row[RECEIVED] = 9
    assert figures.per_trainer(RECEIVED) == [5]


def test_failure_before_the_start_writes_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "demo" / "1"
    run.mkdir(parents=True)
    write_failure(run, "The plan is gone. Start again.")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["status"] == "failed" and summary["error"] == "The plan is gone. Start again."
    assert summary["name"] == "demo" and summary["samples"] == {"received": 0, "validation": 0, "per_trainer": []}
    assert capsys.readouterr().err == "mpidata: The plan is gone. Start again.\n"


def test_summary_reports_batches_beyond_the_draw_budget(tmp_path: Path) -> None:
    figures = Figures(trainers=1, capacity=10)
    figures.report("budget.excess", 2.0)
    conclusion: Conclusion = {"status": "complete", "error": None, "reason": None}
    summary = figures.summary(tmp_path, conclusion, Simulations(1, trainers=1), None, 1.0)
    assert summary["batches"] == {"per_trainer": [0], "excess": 2} and summary["training"] == {}
