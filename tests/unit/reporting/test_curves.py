"""Curves over time: values between the lines of metrics.jsonl, and reports that contain them."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from made_run import T0, MadeRun

from mpidata.reporting.curves import draw_curves, rates, spans_a_decade, thinned
from mpidata.reporting.reading.run_snapshot import look_at


def test_rates_lie_between_lines_and_skip_the_step_back_of_a_resume() -> None:
    at, rate = rates(np.array([1.0, 2.0, 4.0, 4.0, 5.0]), np.array([0.0, 10.0, 50.0, 20.0, 21.0]))
    assert at.tolist() == [1.5, 3.0, 4.5] and rate.tolist() == [10.0, 20.0, 1.0]


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [
        ([1.0, 11.0], True),
        ([1.0, 10.0], False),
        ([1.0, -11.0], False),
        ([0.0, 11.0], False),
        ([1e-9, np.nan, np.inf, 1.0], True),
        ([np.nan], False),
        ([], False),
    ],
)
def test_a_scale_is_logarithmic_if_positive_values_span_more_than_a_decade(
    values: list[float], logarithmic: bool
) -> None:
    assert spans_a_decade(values) == logarithmic


def test_losses_are_drawn_on_a_logarithmic_scale(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    lines = [line(second) | {"report": {"loss": 10.0**-second, "rate": 1.0}} for second in range(1, 5)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(of) + "\n" for of in lines))
    source = draw_curves(look_at(run.path)).partition("base64,")[2].partition('"')[0]
    assert b"mathdefault{10^{" in base64.b64decode(source)


@pytest.mark.parametrize("losses", [[1e308, -1e308], [1.0, 1.7e308], [1.7e308, 1.7e308], [1e-320, 1e308], [0, 5e-324]])
def test_largest_and_smallest_values_are_drawn(tmp_path: Path, losses: list[float]) -> None:
    run = MadeRun(tmp_path)
    lines = [line(second) | {"report": {"loss": losses[second % 2]}} for second in range(1, 5)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(of) + "\n" for of in lines))
    source = base64.b64decode(draw_curves(look_at(run.path)).partition("base64,")[2].partition('"')[0])
    assert (b">loss / 1e10<" in source) == (max(losses) > 1) and (b">loss<" in source) == (max(losses) < 1)


@pytest.mark.parametrize(("count", "most"), [(3, 10), (10, 10), (11, 10), (1000, 7)])
def test_thinning_keeps_the_last_line(count: int, most: int) -> None:
    lines = [{"seconds": second} for second in range(count)]
    left = thinned(lines, most)
    assert (
        len(left) <= most
        and left[-1] == lines[-1]
        and [line["seconds"] for line in left] == sorted(line["seconds"] for line in left)
    )


def line(second: int, trainers: int = 2) -> dict[str, object]:
    return {
        "time": T0 + second, "seconds": second, "received": [10 * second] * trainers, "drawn": [second] * trainers,
        "fill": [0.5] * trainers, "waited_s": [0.1 * second] * trainers,
        "report": {"loss": None if second % 2 else 1.0},
        "groups": {"room_s": 0.1 * second, "next_s": 0.0},
    }  # fmt: skip


def test_curves_cover_a_run_resumed_with_other_trainers(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    run.events((0.0, "start", {"groups": 3}))
    lines = [line(second) for second in range(1, 20)] + [line(second, 12) for second in range(19, 30)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(of) + "\n" for of in lines) + '{"seconds": 30, "rec')
    drawn = draw_curves(look_at(run.path))
    assert "<img" in drawn and "throughput, fill, waiting, loss" in drawn
    (run.path / "metrics.jsonl").write_text(json.dumps(line(1)) + "\n")
    assert draw_curves(look_at(run.path)) == ""
