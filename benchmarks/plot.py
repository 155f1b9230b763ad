"""The plot of the report: throughput by sample size."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.table import size_name

__all__ = ["draw"]


def draw(figures: Figures, path: Path) -> None:
    """Draw all rows with their spread, and write a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 6), layout="constrained")
    for row in figures.rows:
        points = [(size, figures.rate(row, size)) for size in figures.sizes]
        known = [(size, spread.scaled(size / 1e6)) for size, spread in points if spread]
        if not known:
            continue
        middle = [spread.median for _, spread in known]
        errors = [[s.median - s.low for _, s in known], [s.high - s.median for _, s in known]]
        style = "-" if row.startswith("mpidata") else "--" if row.startswith(("MPI", "memcpy")) else ":"
        axes.errorbar([size for size, _ in known], middle, yerr=errors, fmt=style, marker="o", capsize=3, label=row)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(figures.sizes, [size_name(size) for size in figures.sizes])
    axes.set_xlabel("bytes of one sample")
    axes.set_ylabel("MB/s in batches of 32")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
