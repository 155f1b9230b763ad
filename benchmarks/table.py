"""The report: what was measured as a page of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import Figures, Spread

__all__ = ["REFERENCES", "page", "size_name"]

# Rows that the others are compared with.
REFERENCES = ["MPI, gathered", "MPI, not gathered", "pyzmq, pickle", "mpidata fifo"]
_NOTHING = "–"


def size_name(sample_bytes: int) -> str:
    """8192 is '8 KB'."""
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if sample_bytes >= unit:
            return f"{sample_bytes / unit:g} {name}"
    return f"{sample_bytes} B"


def number(value: float) -> str:
    """With about three digits that count."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(spread: Spread | None) -> str:
    """Median and spread, or a dash."""
    if spread is None:
        return _NOTHING
    if spread.low == spread.high:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}–{number(spread.high)})"


def table(figures: Figures, value: Callable[[str, int], str]) -> str:
    """Rows by sizes."""
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
    """The whole page.

    Parameters
    ----------
    figures : Figures
        By row.
    ways : Figures
        By contender, for those that share a row.
    machine : mapping
        Of what is said about the machine.
    settings : str
        Rounds and seconds, as a sentence.
    about : mapping
        What each row is.
    without : sequence of str
        What is missing or has failed, and why.
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
