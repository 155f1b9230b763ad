"""Runs whose files have values of other types: the commands that show a run name the file and the key."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from launch_job import write_job

from mpidata.cli import main
from mpidata.config import load_job
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.run.folder import RunFolder

ODD: list[Any] = [
    None, True, -1, 0, -0.5, 10**6, 2**70, 1e308, -1e308, float("inf"), float("nan"), "x", "", [], [[]], [1], {},
]  # fmt: skip


def line(second: int) -> dict[str, Any]:
    spent = {"compute_s": 1.0 * second, "room_s": 0.5 * second, "next_s": 0.1 * second, "start_s": 0.0}
    return {
        "time": 1000.0 + second, "seconds": float(second), "received": [10 * second] * 2, "drawn": [second] * 2,
        "fill": [0.5] * 2, "waited_s": [0.25 * second] * 2, "report": {"loss": 1 / second},
        "simulations": {"running": 2, "complete": second, "failed": 0},
        "groups": {**spent, "step_s": [0.1, 0.2, 0.3, 0.4, 0.5], "slowest": [[0, 0.5], [1, 0.1]]},
        "loaded": {"samples": [second] * 2, "wait_s": [0.1 * second] * 2},
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run that was killed."""
    run, _, lock = prepare_run(load_job(write_job(tmp_path)))
    os.close(lock)
    events: list[dict[str, Any]] = [{"time": 1000.0, "event": "start", "groups": 2, "trainers": 2}]
    times = {"compute_s": 0.1, "room_s": 0.2, "next_s": 0.1, "start_s": 0.1}
    for i in range(6):
        of = {"simulation": i, "group": i % 2}
        events.append({"time": 1001.0 + i, "event": "dispatch", **of})
        events.append({"time": 1002.0 + i, "event": "simulation_run", **of, "steps": 10, **times})
        events.append({"time": 1002.5 + i, "event": "simulation_complete", "simulation": i, "steps": 10})
    events.append({"time": 1009.0, "event": "retry", "simulation": 1, "group": 1, "how": "was killed"})
    events.append({"time": 1009.5, "event": "set_aside", "simulation": 1, "group": 1, "how": "was killed"})
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    run.metrics.write_text("".join(json.dumps(line(second)) + "\n" for second in range(1, 13)))
    reading = {"parts": 3, "counted": 2, "read": 1}
    loaded = {"epoch": 1, "samples": 3, "per_second": 1.0, "batches": [1, 1], "wait_s": [0.1, 0.2], "reading": reading}
    progress = {
        "simulations": {"requested": 8, "running": 1, "complete": 6, "failed": 1, "cancelled": 1},
        "samples": {"received": 240, "per_second": 20.0, "validation": 3}, "trainers": ["trains", "dead"],
        "batches": [12, 12], "fill": [0.5, 0.5], "capacity": 64, "capacity_in_bytes": True, "bytes": 4000,
        "report": {"loss": 0.5}, "training": {"loss": {"first": 1.0, "last": 0.5}}, "seconds": 12.0, "loaded": loaded,
    }  # fmt: skip
    run.progress.write_text(json.dumps(progress))
    summary = {"status": "failed", "error": "It failed.", "reason": None, "retries": [], "record": {"slowed_s": 1.0}}
    run.summary.write_text(
        json.dumps({**progress, **summary, "batches": {"per_trainer": [12, 12]}, "lost_trainers": [1]})
    )
    machine = {"host": "a", "memory_bytes": 10**9, "gpus": ["b"], "packages": {"numpy": "2"}}
    run.machine.write_text(json.dumps(machine))
    return run


def changed(document: Any, chance: random.Random) -> Any:
    """Return a copy with an odd value somewhere, or without a key or an item."""
    if not isinstance(document, (dict, list)) or not document or chance.random() < 0.15:
        return chance.choice(ODD)
    copy = dict(document) if isinstance(document, dict) else list(document)
    key = chance.choice(list(document) if isinstance(document, dict) else range(len(document)))
    if chance.random() < 0.1:
        del copy[key]
    else:
        copy[key] = changed(document[key], chance)
    return copy


def damage(path: Path, chance: random.Random) -> None:
    text = path.read_text()
    if path.suffix == ".json":
        path.write_text(json.dumps(changed(json.loads(text), chance)))
        return
    lines = text.splitlines()
    at = chance.randrange(len(lines))
    lines[at] = json.dumps(changed(json.loads(lines[at]), chance))
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["progress.json", "summary.json", "machine.json", "metrics.jsonl", "events.jsonl"])
def test_no_value_ends_a_command_with_a_traceback(run: RunFolder, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for drawing in ("draw_curves", "draw_timeline", "draw_parameters"):  # they take a second, and have own tests
        monkeypatch.setattr(f"mpidata.reporting.make.{drawing}", lambda *_: "")
    path, summary = run.path / name, run.summary.read_text()
    text = path.read_text()
    for seed in range(30):
        chance = random.Random(seed)
        run.summary.write_text(summary)
        path.write_text(text)
        damage(path, chance)
        if name != "summary.json" and chance.random() < 0.5:
            run.summary.unlink()
        for command in (["list"], ["watch", "--once"], ["advise"], ["report"]):
            done = CliRunner().invoke(main, [command[0], str(run.path), *command[1:]])
            assert done.exception is None or isinstance(done.exception, SystemExit), (seed, command, path.read_text())
            assert done.exit_code == 0, (seed, command, done.output)


def test_each_command_reports_the_values_it_ignores(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    run.summary.unlink()
    run.progress.write_text(json.dumps({**json.loads(run.progress.read_text()), "seconds": "x"}))
    with run.metrics.open("a") as metrics:
        metrics.write(json.dumps({**line(13), "drawn": "x"}) + "\n")
    one = f"{run.progress} is ignored: 'seconds' is \"x\" (input should be a valid number)."
    other = f"Line 13 of {run.metrics} is ignored: 'drawn' is \"x\" (input should be a valid list)."
    told = {name: CliRunner().invoke(main, [name, str(run.path), *more]) for name, more in
            (("list", []), ("watch", ["--once"]), ("report", []))}  # fmt: skip
    assert one in told["list"].output
    assert one in told["watch"].output and other in told["watch"].output
    main(["advise", str(run.path)], standalone_mode=False)
    shown = capsys.readouterr()
    assert one in shown.err and other in shown.err and "is ignored" not in shown.out
    page = run.report.read_text().replace("&#x27;", "'").replace("&quot;", '"')
    assert one in page and other in page
    main(["list", "--json", str(run.path)], standalone_mode=False)
    (found,) = json.loads(capsys.readouterr().out)
    assert found["progress"] is None and found["ignored"].startswith(one)
