"""`mpidata list`: which runs exist, and the status of each."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from launch_job import write_job

from mpidata import cli
from mpidata.config import load_job
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.run.folder import RunFolder
from mpidata.run.plan import Plan
from mpidata.run.run_states import look_at_runs
from mpidata.run.runs import find_runs
from mpidata.scheduler.figures.summary import Figures
from mpidata.scheduler.simulations import Simulations


@pytest.fixture
def runs(tmp_path: Path) -> list[RunFolder]:
    """Twelve runs of two jobs; only the last one is running."""
    made, locks = [], []
    for name, count in (("heat", 2), ("rod", 10)):
        job = load_job(write_job(tmp_path), [f"name={name}"])
        for _ in range(count):
            run, _, lock = prepare_run(job)
            made.append(run)
            locks.append(lock)
    for lock in locks[:-1]:
        os.close(lock)
    return made


def progress_of(run: RunFolder) -> dict[str, Any]:
    plan = Plan.read(run.plan)
    return Figures(plan.trainers, plan.capacity).progress(Simulations(plan.simulations, plan.trainers), 1.0)


def test_runs_are_found_in_the_order_of_their_numbers(runs: list[RunFolder], tmp_path: Path) -> None:
    (tmp_path / "runs/rod/latest").symlink_to("10")
    (tmp_path / "runs/notes").mkdir()
    for folder in (tmp_path / "runs", tmp_path / "runs/rod", runs[0].path):
        inside = [run.path for run in runs if run.path.is_relative_to(folder)]
        assert [run.path for run in find_runs(folder)] == inside


def test_list_determines_the_status_of_each_run(runs: list[RunFolder], tmp_path: Path) -> None:
    failed, heat, *_, gone, going_on = runs
    failed.summary.write_text(json.dumps({"status": "failed", "error": "A solver died."}))
    os.utime(failed.summary, (time.time() - 7200, time.time() - 7200))
    heat.summary.write_text('{"status": ')  # cut off
    gone.progress.write_text(json.dumps(progress_of(gone)))
    os.utime(gone.progress, (time.time() - 100, time.time() - 100))
    found = {one["run"]: one for one in look_at_runs(tmp_path / "runs")}
    assert [one["status"] for one in found.values()] == ["failed", *["gone"] * 10, "running"]
    told = found[str(failed.path)]
    assert told["error"] == "A solver died." and 7200 <= told["age_s"] < 7300 and told["progress"] is None
    assert found[str(gone.path)]["progress"]["simulations"]["requested"] > 0
    # A run whose `mpidata run` is gone, or on another host, but that continues.
    os.utime(gone.progress)
    assert look_at_runs(gone.path)[0]["status"] == "running"
    # A sign of life from another host may arrive late; on this host it does not.
    os.utime(gone.progress, (time.time() - 10, time.time() - 10))
    for host, status in (("elsewhere", "running"), (platform.node(), "gone")):
        gone.machine.write_text(json.dumps({"host": host}))
        assert look_at_runs(gone.path)[0]["status"] == status


def test_list_command_prints_a_table_or_json(
    runs: list[RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs[0].summary.write_text(json.dumps({"status": "complete", "error": None}))
    runs[-1].progress.write_text(json.dumps(progress_of(runs[-1])))
    result = CliRunner().invoke(cli.main, ["list"])
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0 and len(lines) == 13, result.output
    assert lines[0] == ["run", "status", "age", "progress"] and lines[1][:2] == ["heat/1", "complete"]
    assert lines[-1][:2] == ["rod/10", "running"] and "simulations" in lines[-1]
    told = json.loads(CliRunner().invoke(cli.main, ["list", "runs/rod", "--json"]).stdout)
    assert [Path(one["run"]).name for one in told] == [str(number) for number in range(1, 11)]
    result = CliRunner().invoke(cli.main, ["list", "nowhere"])
    assert result.exit_code == 2 and "nowhere is not a folder" in result.output
