"""The page of `mpidata watch`: for jobs and terminals of all sizes, and for running, ended and killed runs."""

import fcntl
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from launch_job import write_job
from rich.console import Console

from mpidata import cli
from mpidata.config import load_job
from mpidata.launch.page.page import draw, left_s, sparkline
from mpidata.launch.page.view import View
from mpidata.launch.starting.folder.prepare import prepare_run
from mpidata.run.folder import RunFolder


def test_sparkline_averages_values_that_do_not_fit() -> None:
    assert sparkline([0.0, 7.0, 3.0], 10) == "▁█▄"
    assert sparkline([0.0, 0.0, None, 7.0, 7.0], 3) == "▁██"
    assert sparkline([None, float("nan")], 5) == "" and sparkline([], 5) == "" and sparkline([2.0, 2.0], 5) == "▁▁"
    assert len(sparkline([float(i) for i in range(1001)], 40)) <= 40


def test_sparkline_draws_the_largest_and_smallest_numbers() -> None:
    great, least = sys.float_info.max, 5e-324
    assert sparkline([-great, great, 0.0], 5) == "▁█▅" and sparkline([great] * 9, 3) == "▁▁▁"
    assert sparkline([great, great, -great, -great], 2) == "█▁" and sparkline([0.0, least], 5) == "▁█"
    assert sparkline([great, least, -least], 5) == "█▁▁"


def test_program_output_cannot_control_the_terminal(tmp_path: Path) -> None:
    run, lock = made_up(tmp_path, 2, 1)
    fcntl.flock(lock, fcntl.LOCK_UN)
    run.summary.write_text(json.dumps({"status": "failed", "error": "bad\x1b]0;title\a \u202emesh"}))
    progress = json.loads(run.progress.read_text())
    run.progress.write_text(json.dumps(progress | {"report": {"\x1bc": 1.0}}))
    view = View(run)
    view.look()
    text = "\n".join(shown(view, 100, 40))
    assert "bad\\x1b]0;title \\u202emesh" in text and "\\x1bc" in text and "\x1b" not in text and "\u202e" not in text


def line(second: int, groups: int, trainers: int, **more: Any) -> dict[str, Any]:
    slowest = [[group, 0.5 - group / 100] for group in range(min(16, groups))]
    spent = {"compute_s": 6.0 * second, "room_s": 3.0 * second, "next_s": 1.0 * second, "start_s": 0.0}
    return {
        "time": 1000.0 + second, "seconds": second, "received": [10 * second] * trainers, "drawn": [second] * trainers,
        "fill": [0.5] * trainers, "waited_s": [0.25 * second] * trainers, "report": {"loss": 1 / second},
        "simulations": {"running": groups, "complete": second, "failed": 0},
        "groups": {**spent, "steps": 9, "simulations": second, "slowest": slowest, "step_s": [0.1, 0.2, 0.3, 0.4, 0.5]},
        **more,
    }  # fmt: skip


def made_up(tmp_path: Path, groups: int, trainers: int, seconds: int = 100) -> tuple[RunFolder, int]:
    """Return a run that has lasted for `seconds`, and its lock."""
    run, _, lock = prepare_run(load_job(write_job(tmp_path)))
    events: list[dict[str, Any]] = [{"time": 1000.0, "event": "start", "groups": groups, "trainers": trainers}]
    events += [{"time": 1001.0, "event": "group_lost", "group": 0}, {"time": 1001.5, "event": "retry", "group": 0}]
    events += [{"time": 1002.0, "event": "trainer_lost", "trainer": 0}] * (trainers > 1)
    run.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    lines = [line(second, groups, trainers) for second in range(1, seconds + 1)]
    run.metrics.write_text("".join(json.dumps(of) + "\n" for of in lines) + '{"time": 1100.0, "seco')
    progress = {
        "simulations": {"requested": 150, "running": groups, "complete": seconds, "failed": 0},
        "samples": {"received": 10 * seconds * trainers, "per_second": 10.0 * trainers}, "seconds": float(seconds),
        "batches": [seconds] * trainers, "fill": [0.5] * trainers, "capacity": 64, "report": {"loss": 0.01},
    }  # fmt: skip
    run.progress.write_text(json.dumps(progress))
    return run, lock


def shown(view: View, width: int, height: int) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, height=height, color_system=None).print(draw(view, width, height))
    return output.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 10)])
@pytest.mark.parametrize(("groups", "trainers"), [(1, 1), (64, 4), (2000, 40)])
def test_page_fits_the_terminal(tmp_path: Path, width: int, height: int, groups: int, trainers: int) -> None:
    run, _ = made_up(tmp_path, groups, trainers)
    view = View(run)
    view.look()
    page = shown(view, width, height)
    assert len(page) <= height and all(len(text) <= width for text in page), page
    assert page[0].startswith(f"job/{run.path.name} running  100 s, about 50 s more")
    if height < 24:
        return
    text = "\n".join(page)
    assert f"100/150, {groups} running" in text and f"{groups} groups" in text and "groups lost: 1" in text
    assert ("trainers lost: 1" in text) == (trainers > 1)
    assert "60 % computing" in text and "30 % no room" in text and "25 % of its time" in text
    assert "half of the groups 0.3; slowest 0: 0.5" in text
    buffers = 1 if trainers == 40 else trainers
    assert len([row for row in page if "buffer" in row]) == buffers


def test_terminals_without_block_characters_get_ascii(tmp_path: Path) -> None:
    view = View(made_up(tmp_path, 3, 2)[0])
    view.look()
    text = io.StringIO()
    Console(file=text, width=80).print(draw(view, 80, 24, "ascii"))
    assert text.getvalue().isascii() and "#" in text.getvalue()


def test_view_reads_new_lines_and_starts_over_after_a_resume(tmp_path: Path) -> None:
    run, _ = made_up(tmp_path, 2, 1)
    view = View(run)
    view.look()
    assert len(view.metrics) == 100 and left_s(view) == pytest.approx(50)
    with run.metrics.open("a") as metrics:
        metrics.write('nds": 1}\n')  # the rest of the line that was cut off
        metrics.write(json.dumps(line(101, 2, 1)) + "\n")
    view.look()
    assert len(view.metrics) == 101 and view.metrics[-1]["seconds"] == 101
    with run.events.open("a") as events:
        events.write(json.dumps({"time": 2000.0, "event": "start", "groups": 3}) + "\n")
    view.look()
    assert view.metrics == [] and view.start["groups"] == 3 and left_s(view) is None


def test_watch_command_shows_running_gone_and_failed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, lock = made_up(tmp_path, 2, 1)
    monkeypatch.setenv("COLUMNS", "100")
    there = CliRunner().invoke(cli.main, ["watch", str(run.path), "--once"])
    assert there.exit_code == 0 and "100/150" in there.output and "running" in there.output
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.utime(run.progress, (1000, 1000))
    gone = CliRunner().invoke(cli.main, ["watch", str(run.path), "--once"])
    assert "gone" in gone.output.splitlines()[0] and "more" not in gone.output.splitlines()[0]
    run.summary.write_text(json.dumps({"status": "failed", "error": "A trainer died."}))
    ended = CliRunner().invoke(cli.main, ["watch", str(run.path), "--once"])
    assert "failed" in ended.output.splitlines()[0] and ended.output.splitlines()[-1] == "A trainer died."
    nothing = CliRunner().invoke(cli.main, ["watch", str(tmp_path)])
    assert nothing.exit_code == 2 and "is not a run folder" in nothing.output


def test_run_that_has_not_started_is_shown_as_waiting(tmp_path: Path) -> None:
    run, _, _lock = prepare_run(load_job(write_job(tmp_path)))
    view = View(run)
    view.look()
    assert shown(view, 80, 24)[-1] == "Waiting for all ranks to join."


@pytest.mark.parametrize("trainers", [3, 40])
def test_buffers_of_trainers_that_do_not_train_show_their_state(tmp_path: Path, trainers: int) -> None:
    run, _ = made_up(tmp_path, 1, trainers)
    progress = json.loads(run.progress.read_text())
    states = ["trains"] * (trainers - 2) + ["dead", "spare"]
    fill = [0.5] * (trainers - 2) + [0.0, 0.0]
    run.progress.write_text(json.dumps(progress | {"trainers": states, "fill": fill, "batches": [*range(trainers)]}))
    view = View(run)
    view.look()
    text = "\n".join(shown(view, 100, 40))
    if trainers == 3:
        assert "50 % of 64, 0 batches" in text and "dead, 1 batches" in text and "spare, 2 batches" in text
    else:
        assert "38 buffers" in text and "50 to 50 % of 64, 0 to 37 batches" in text
    run.progress.write_text(json.dumps(progress | {"trainers": ["dead"] * trainers}))
    view.look()
    assert shown(view, 100, 40)


def test_capacity_in_bytes_is_shown_with_its_unit(tmp_path: Path) -> None:
    run, _ = made_up(tmp_path, 1, 1)
    progress = json.loads(run.progress.read_text())
    run.progress.write_text(json.dumps(progress | {"capacity": 3 << 29, "capacity_in_bytes": True}))
    view = View(run)
    view.look()
    assert "50 % of 1.5 GiB, 100 batches" in "\n".join(shown(view, 100, 40))
