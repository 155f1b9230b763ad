"""Lines of metrics.jsonl: when they are due, and the figures of the groups."""

import json
from pathlib import Path

import pytest

from mpidata.native.event import Next
from mpidata.scheduler.figures.writer import TIMES, GroupTimes, Metrics


def test_metrics_are_due_every_second_for_an_hour_then_less_often(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "metrics.jsonl", lambda: 12.3456)
    due = [second / 2 for second in range(2 * 100_000) if metrics.is_due(second / 2)]
    assert len([second for second in due if second < 3600]) == 3600
    assert len([second for second in due if 3600 <= second < 86400]) == pytest.approx(8280, abs=1)
    assert len([second for second in due if second >= 86400]) == pytest.approx(13_600 / 60, abs=1)
    metrics.write({"fill": [0.5, float("nan")]})
    metrics.write({"fill": []})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"time": 12.346, "fill": [0.5, None]} and len(lines) == 2


def test_write_to_a_missing_folder_raises_no_error(tmp_path: Path) -> None:
    Metrics(tmp_path / "gone" / "metrics.jsonl").write({})


def closed(steps: int, total: float, **parts: float) -> Next:
    micro = {f"{name}_us": int(1e6 * seconds) for name, seconds in parts.items()}
    return Next(
        of_solver=True,
        index=0,
        rank=0,
        simulation=3,
        steps=steps,
        failed=0,
        text="",
        total_us=int(1e6 * total),
        **micro,
    )


def test_parts_of_the_time_of_a_group_add_up_to_the_total() -> None:
    times = GroupTimes()
    spent = times.add(4, closed(11, 10.0, room=2.0, next=1.0, start=3.0))
    assert dict(zip(TIMES, spent, strict=True)) == {"compute_s": 4.0, "room_s": 2.0, "next_s": 1.0, "start_s": 3.0}
    times.add(7, closed(11, 2.0))
    for group in range(20):
        times.add(100 + group, closed(2, 0.001 * (group + 1)))
    figures = times.figures()
    assert figures["steps"] == 62 and figures["simulations"] == 22
    assert sum(figures[name] for name in TIMES) == pytest.approx(12.21)
    assert times.usage[0].memory_kb == 0 and len(times.usage) == 22
    assert figures["slowest"][:3] == [[4, 0.4], [7, 0.2], [119, 0.02]] and len(figures["slowest"]) == 16
    assert figures["step_s"] == sorted(figures["step_s"]) and figures["step_s"][-1] == 0.4
