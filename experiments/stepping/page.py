"""The page of the experiments with surrogates that step forward in time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.intervals import Ratio
from experiments.tables import QUANTITIES, table

__all__ = ["render"]

Found = dict[str, list[dict[str, Any]]]  # results of an arm's seeds
_REFERENCE = "uniform"


def render(
    equation: str, arms: Sequence[str], seeds: int, simulations: int, shown: Sequence[str], output: Path
) -> None:
    """Write a page and a picture from the results that are there; `shown` are the parameters in the picture."""
    every = {arm: [output / f"{arm}-{seed}.json" for seed in range(seeds)] for arm in arms}
    # Pairs only: seeds that all arms have.
    there = [seed for seed in range(seeds) if all(paths[seed].exists() for paths in every.values())]
    if not there:
        return
    found: Found = {arm: [json.loads(paths[seed].read_text()) for seed in there] for arm, paths in every.items()}
    parts = [
        f"# Which simulations to train on: {_title(equation)}",
        "Made by `make experiments`; [what was done](../../README.md#stepping). Root mean square errors of whole "
        "simulations of which only the start was given, on those that nobody trained on: their mean, 99th percentile "
        f"and greatest; geometric mean over {len(there)} seeds. In brackets: ratio to {_REFERENCE} at the same seeds, "
        f"with its 95 % interval; below 1 is better than {_REFERENCE}. Each arm ran {simulations} simulations, and "
        f"trained {found[_REFERENCE][0]['steps']:,} steps.",
        table(found, _REFERENCE, lambda result: result),
        _verdict(found),
        f"![errors, and parameters that were drawn]({equation}.png)",
    ]
    (output / f"{equation}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    _plot(found, shown, output / f"{equation}.png")


def _title(equation: str) -> str:
    return "Burgers' equation" if equation == "burgers" else "the Kuramoto-Sivashinsky equation"


def _verdict(found: Found) -> str:
    """Say in words what the intervals say."""
    told = []
    for arm in found:
        if arm == _REFERENCE:
            continue
        words: dict[str, list[str]] = {"better": [], "worse": [], "not distinguishable": []}
        for quantity in QUANTITIES:
            ours, others = ([result[quantity] for result in found[name]] for name in (arm, _REFERENCE))
            ratio = Ratio.of(ours, others)
            word = "better" if ratio.middle < 1 else "worse"
            words[word if ratio.distinguishable else "not distinguishable"].append(quantity)
        told.append(f"{arm} is " + ", ".join(f"{word} in {' and '.join(of)}" for word, of in words.items() if of))
    return f"Compared with {_REFERENCE}: {'; '.join(told)}."


def _plot(found: Found, shown: Sequence[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 1 + len(found), figsize=(6 * (1 + len(found)), 5), layout="constrained")
    for arm, results in found.items():
        quantiles = np.exp(np.mean([np.log(result["quantiles"]) for result in results], axis=0))
        axes[0].semilogy(np.linspace(0, 100, len(quantiles)), quantiles, label=arm)
    axes[0].set(xlabel="percentile of held-out simulations", ylabel="error")
    axes[0].grid(alpha=0.3)
    axes[0].legend()
    for axis, (arm, results) in zip(axes[1:], found.items(), strict=True):
        x, y = (results[0]["drawn"][name] for name in shown)
        axis.plot(x, y, ".", markersize=3)
        axis.set(title=f"drawn by {arm}, first seed", xlabel=shown[0], ylabel=shown[1])
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
