"""Advice, curves and page of a job with loaders and without solvers."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mpidata.launch.page.page import draw
from mpidata.launch.page.view import View
from mpidata.reporting.advice.measurements import measure
from mpidata.reporting.advice.run import advise_run
from mpidata.reporting.make import make_report
from mpidata.reporting.reading.run_snapshot import look_at
from mpidata.run.folder import RunFolder


def made_up(folder: Path, waits: float, seconds: int = 60) -> RunFolder:
    """Return a run of two trainers that each load 1000 samples/s and wait for the share `waits` of the time."""
    run = RunFolder(folder / "runs" / "parts" / "1")
    run.path.mkdir(parents=True)
    run.job.write_text("name: parts\nloaders: {ranks: 3}\n")
    run.events.write_text(json.dumps({"time": 1000.0, "event": "start", "groups": 0, "trainers": 2}) + "\n")
    none = {"compute_s": 0.0, "room_s": 0.0, "next_s": 0.0, "start_s": 0.0, "steps": 0, "step_s": [], "slowest": []}
    lines = [
        {"time": 1000.0 + s, "seconds": float(s), "received": [0, 0], "drawn": [10 * s] * 2, "fill": [0.0] * 2,
         "waited_s": [0.0] * 2, "groups": none, "report": {},
         **({"loaded": {"samples": [1000 * s] * 2, "wait_s": [waits * s] * 2}} if s else {})}
        for s in range(seconds)
    ]  # fmt: skip
    run.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = {"epoch": 0, "samples": 2000 * seconds, "per_second": 2000, "batches": [600, 600], "wait_s": [1.0, 1.0]}
    figures = {"simulations": {"requested": 0, "running": 0, "complete": 0, "failed": 0}, "loaded": loaded}
    figures |= {"samples": {"received": 0, "per_second": 0.0}, "batches": [0, 0], "fill": [0.0, 0.0], "report": {}}
    run.progress.write_text(json.dumps({**figures, "seconds": float(seconds)}))
    return run


@pytest.mark.parametrize(("waits", "cause"), [(0.05, "balanced"), (0.4, "loaders")])
def test_loaders_are_judged_by_how_long_training_waits(tmp_path: Path, waits: float, cause: str) -> None:
    advice = advise_run(look_at(made_up(tmp_path, waits).path))
    assert advice.cause == cause
    assert f"waited for data for {100 * waits:.0f} % of their time, at 2000 samples a second" in advice.sentences[1]
    assert ("it had 3" in advice.sentences[-1]) == (cause == "loaders")


def test_page_and_report_show_the_figures_of_loaders(tmp_path: Path) -> None:
    run = made_up(tmp_path, 0.4)
    view = View(run)
    view.look()
    console = Console(width=80, record=True)
    console.print(draw(view, 80, 24))
    assert "40 % of its time" in console.export_text()
    report = make_report([run.path]).read_text()
    assert "The loaders held the job back." in report and "throughput, waiting" in report


def of_solvers(folder: Path, solvers: str) -> tuple[RunFolder, list[dict[str, Any]]]:
    """Return such a run of a job with solvers, and its metrics lines."""
    run = made_up(folder, 0.4)
    run.job.write_text(f"name: parts\nsolvers: {solvers}\n")
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    for line in lines:
        line["received"] = line["drawn"]
    closed = {"event": "simulation_run", "simulation": 0, "group": 0, "steps": 9, "compute_s": 1.0}
    with run.events.open("a") as events:
        events.write("".join(json.dumps({**closed, "time": 1000.0 + time}) + "\n" for time in (1, 59)))
    return run, lines


def write_metrics(run: RunFolder, lines: list[dict[str, Any]]) -> None:
    run.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_ranks_per_group_counts_the_ranks_of_a_carried_program(tmp_path: Path) -> None:
    run, lines = of_solvers(tmp_path, "{ranks_per_group: 2, carried: {ranks: 6}}")
    write_metrics(run, lines)
    measured = measure(look_at(run.path))
    assert measured is not None and measured.ranks_per_group == 6


def test_trainers_that_drew_nothing_are_not_judged(tmp_path: Path) -> None:
    run, lines = of_solvers(tmp_path, "{groups: 2}")
    for line in lines:  # spares wait, and the solvers wait for room
        line["drawn"] = line["received"] = [0, *line["drawn"], 0]
        line["fill"], line["waited_s"] = [0.0] * 4, [0.0] * 4
        line["groups"]["room_s"] = line["seconds"]
    write_metrics(run, lines)
    look = look_at(run.path)
    measured = measure(look)
    assert measured is not None and [trainer.number for trainer in measured.trainers] == [1, 2]
    assert advise_run(look).cause != "unknown"


def test_a_run_whose_trainers_changed_is_not_judged(tmp_path: Path) -> None:
    run, lines = of_solvers(tmp_path, "{groups: 2}")
    write_metrics(run, lines)
    assert advise_run(look_at(run.path)).cause != "unknown"
    with run.events.open("a") as events:
        events.write(json.dumps({"time": 1030.0, "event": "trainer_lost", "trainer": 1}) + "\n")
    advice = advise_run(look_at(run.path))
    assert advice.cause == "unknown" and "died" in advice.sentences[-1]


def test_resume_with_another_number_of_trainers_is_measured(tmp_path: Path) -> None:
    run, lines = of_solvers(tmp_path, "{groups: 2}")
    alone = {"fill": [0.0], "waited_s": [0.0], "loaded": None}  # the first 30 s, by one trainer
    before = [{**line, **alone, "received": line["drawn"][:1], "drawn": line["drawn"][:1]} for line in lines[:30]]
    for line in lines:
        line["seconds"] += 30
        line["received"] = line["drawn"] = [300 + drawn for drawn in line["drawn"]]
    write_metrics(run, [*before, *lines])
    measured = measure(look_at(run.path))
    assert measured is not None and len(measured.trainers) == 2
    assert "Over time" in make_report([run.path]).read_text()
