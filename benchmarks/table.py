"""The report: the measurements as a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import Figures, Spread

__all__ = ["REFERENCES", "page", "size_name"]

# Rows with which the others are compared.
REFERENCES = ["MPI, gathered", "MPI, not gathered", "pyzmq, pickle", "mpidata fifo"]
_NOTHING = "–"


def size_name(sample_bytes: int) -> str:
    """Return the name of a size, such as '8 KB' for 8192."""
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if sample_bytes >= unit:
            return f"{sample_bytes / unit:g} {name}"
    return f"{sample_bytes} B"


def number(value: float) -> str:
    """Return a number with about three significant digits."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(spread: Spread | None) -> str:
    """Return median and spread, or a dash."""
    if spread is None:
        return _NOTHING
    if spread.low == spread.high:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}–{number(spread.high)})"


def table(figures: Figures, value: Callable[[str, int], str]) -> str:
    """Return a table of rows by sizes."""
    lines = [
        "| | " + " | ".join(size_name(size) for size in figures.sizes) + " |",
        "| --- |" + " ---: |" * len(figures.sizes),
    ]
    for row in figures.rows:
        lines.append(f"| {row} | " + " | ".join(value(row, size) for size in figures.sizes) + " |")
    return "\n".join(lines)


def page(
    figures: Figures,
    ways: Figures,
    machine: Mapping[str, str],
    settings: str,
    about: Mapping[str, str],
    without: Sequence[str],
) -> str:
    """Return the whole page.

    Parameters
    ----------
    figures : Figures
        Figures by row.
    ways : Figures
        Figures by contender, for those that share a row.
    machine : mapping
        Description of the machine.
    settings : str
        Rounds and seconds, as a sentence.
    about : mapping
        Description of each row.
    without : sequence of str
        What is missing or failed, and why.
    """
    parts = [
        "# Stream: from the put to a batch of 32",
        settings + " Median (lowest–highest). [How to read it](../../docs/benchmarks.md).",
        "![Throughput by size of a sample](stream.png)",
        "## MB/s",
        table(figures, lambda row, size: cell(_times(figures.rate(row, size), size / 1e6))),
        "## Thousands of samples a second",
        table(figures, lambda row, size: cell(_times(figures.rate(row, size), 1e-3))),
    ]
    for reference in REFERENCES:
        if reference in figures.rows:
            parts += [
                f"## Ratio to: {reference}",
                table(figures, lambda row, size, to=reference: cell(figures.ratio(row, to, size))),  # type: ignore[misc]
            ]
    parts += ["## Variants of rows that have several, MB/s"]
    parts += [table(ways, lambda row, size: cell(_times(ways.rate(row, size), size / 1e6)))]
    parts += ["## Contenders", "\n".join(f"- {row}: {text}." for row, text in about.items())]
    if without:
        parts += ["## What is missing", "\n".join(f"- {line}" for line in without)]
    parts += ["## Machine", "\n".join(f"- {name}: {value}" for name, value in machine.items())]
    return "\n\n".join(parts) + "\n"


def _times(spread: Spread | None, factor: float) -> Spread | None:
    return spread.scaled(factor) if spread else None
