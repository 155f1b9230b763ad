"""Figures of benchmarks, and the tables made from them."""

import pytest

from benchmarks import stream, table
from benchmarks.figures import Figures, Measurement, Spread

KB = 1 << 10


def measurements(**rates: list[float]) -> list[Measurement]:
    """Return measurements of contenders by name: one rate for each round of 2 s."""
    return [
        Measurement(name, KB, number, int(2 * rate), 2.0)
        for name, of_rounds in rates.items()
        for number, rate in enumerate(of_rounds)
    ]


def test_spread_is_the_median_with_minimum_and_maximum() -> None:
    assert Spread.of([3.0, 1.0, 100.0]) == Spread(3.0, 1.0, 100.0)
    assert Spread.of([4.0, 2.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([]) is None


def test_ratios_are_taken_within_a_round() -> None:
    """The machine was twice as fast in the second round; the ratio was not."""
    figures = Figures(measurements(a=[100, 200, 100], b=[50, 100, 40]), {"a": ["a"], "b": ["b"]})
    assert figures.ratio("a", "b", KB) == Spread(2.0, 2.0, 2.5)
    assert figures.rate("a", KB) == Spread(100.0, 100.0, 200.0)


def test_round_without_both_contenders_gives_no_ratio() -> None:
    measured = [one for one in measurements(a=[100, 200], b=[50, 100]) if (one.contender, one.round) != ("b", 1)]
    figures = Figures(measured, {"a": ["a"], "b": ["b"], "c": ["c"]})
    assert figures.ratio("a", "b", KB) == Spread(2.0, 2.0, 2.0)
    assert figures.ratio("a", "c", KB) is None
    assert figures.ratio("a", "b", 8 * KB) is None


def test_best_contender_of_a_row_has_the_highest_median() -> None:
    """The best of each round would be raised by noise alone."""
    figures = Figures(measurements(calm=[10, 10, 10], wild=[1, 9, 90]), {"ceiling": ["wild", "calm"]})
    assert figures.best("ceiling", KB) == "calm"
    assert figures.rate("ceiling", KB) == Spread(10.0, 10.0, 10.0)


@pytest.mark.parametrize(
    ("spread", "text"),
    [
        (None, "–"),
        (Spread(0.5, 0.25, 0.75), "0.50 (0.25–0.75)"),
        (Spread(12.34, 12.34, 12.34), "12.3"),
        (Spread(1234.5, 99.96, 4321.0), "1234 (100.0–4321)"),
    ],
)
def test_cells_show_median_and_range(spread: Spread | None, text: str) -> None:
    assert table.cell(spread) == text


def test_sizes_have_names() -> None:
    assert [table.size_name(size) for size in stream.SIZES] == ["1 KB", "8 KB", "64 KB", "256 KB", "1 MB", "8 MB"]
    assert table.size_name(100) == "100 B"


def test_table_has_one_line_per_row_and_one_column_per_size() -> None:
    figures = Figures(measurements(a=[1, 2, 3]), {"a": ["a"], "b": ["b"]})
    lines = table.table(figures, lambda row, size: table.cell(figures.rate(row, size))).splitlines()
    assert lines == ["| | 1 KB |", "| --- | ---: |", "| a | 2.00 (1.00–3.00) |", "| b | – |"]
