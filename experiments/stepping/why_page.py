"""The page that explains why samplers win or lose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import Results
from experiments.stepping.compared import Compared, Found
from experiments.stepping.correlations import MEASURES
from experiments.tables import table

__all__ = ["render"]

_REFERENCE = "uniform"
_WORST = 2  # tenths of the viscosity where the errors are largest


def render(compared: Compared, results: Results, output: Path) -> None:
    """Write a page and a plot of the available results for one equation."""
    found = compared.found(compared.equations[0], results)
    if not found:
        return
    parts = [
        "# Why samplers win or lose",
        "Written by `make experiments`; [the README](../README.md#why-samplers-win-or-lose) describes the experiment. "
        f"Burgers' equation, {compared.simulations} simulations, {len(found[_REFERENCE])} seeds. Errors are defined as "
        "in [the comparison of samplers](samplers.md).",
        table(found, _REFERENCE, lambda result: result),
        "## Simulations that are drawn, and samples in batches",
        f"The share of simulations in the lowest {10 * _WORST} % of the viscosities (on a logarithmic scale), the "
        "share of samples in batches that belong to such simulations, and the age of the samples in batches: how many "
        "simulations ago their simulation began, on average. Each has four figures, one for each quarter of the run.",
        _shares(found),
        "## Correlation of losses and errors",
        "Spearman's rank correlation, over the simulations of a run, between a measure in losses.csv and the error of "
        "the final model in the same simulation: mean over the seeds.",
        _correlations(found),
        f"![parameters that were drawn, by quarters of the run]({compared.name}.png)",
    ]
    (output / f"{compared.name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    _plot(found, output / f"{compared.name}.png")


def _shares(found: Found) -> str:
    lines = ["| arm | drawn | in batches | age |", "| --- | --- | --- | --- |"]
    for arm, results in found.items():
        shares = []
        for what in ("drawn", "trained"):
            counts = np.sum([result[what] for result in results], axis=0)
            shares.append(", ".join(f"{share:.2f}" for share in counts[:, :_WORST].sum(1) / counts.sum(1)))
        ages = ", ".join(f"{age:.0f}" for age in np.mean([result["ages"] for result in results], axis=0))
        lines.append(f"| {arm} | {shares[0]} | {shares[1]} | {ages} |")
    return "\n".join(lines)


def _correlations(found: Found) -> str:
    lines = ["| arm | " + " | ".join(MEASURES) + " |", "| --- |" + " ---: |" * len(MEASURES)]
    for arm, results in found.items():
        cells = [f"{np.mean([result['correlations'][measure] for result in results]):.2f}" for measure in MEASURES]
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _plot(found: Mapping[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(4 * len(found), 4), layout="constrained", sharey=True)
    for axis, (arm, results) in zip(axes, found.items(), strict=True):
        counts = np.sum([result["drawn"] for result in results], axis=0)
        for quarter, row in enumerate(counts):
            axis.plot(np.arange(len(row)) + 0.5, row / row.mean(), label=f"quarter {quarter + 1}")
        axis.set(title=arm, xlabel="tenth of log viscosity")
    axes[0].set(ylabel="density")
    axes[0].legend()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
