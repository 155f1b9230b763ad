"""The page of the experiment with the heat equation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs import Results
from experiments.tables import by_arm, table

__all__ = ["render"]

Mark = dict[str, float]
Found = dict[str, list[dict[str, Any]]]  # results of an arm's seeds
_REFERENCE = "reservoir"


def render(arms: Sequence[str], seeds: Sequence[int], once: int, results: Results, output: Path) -> None:
    """Write heat.md and heat.png from the available results."""
    found: Found = by_arm(results, arms, seeds)
    if not found:
        return
    found = {arm: _with_least_times(of_arm) for arm, of_arm in found.items()}
    parts = ["# Training online and offline: the heat equation", _about(len(found[_REFERENCE]), once)]
    parts += ["![errors over steps and over time](heat.png)"]
    longest = max(mark["steps"] for result in found[_REFERENCE] for mark in result["marks"])
    parts += ["## After the same number of training steps"]
    for steps in dict.fromkeys([once, longest]):
        parts += [f"After {steps:,.0f} steps:", table(found, _REFERENCE, partial(_at_steps, steps))]
    second = _end(found[_REFERENCE][0])["seconds"]
    parts += [
        "## After the same time",
        f"{second:.0f} s after the start of the first simulation, including the time to produce the files:",
        table(found, _REFERENCE, lambda result: _at_time(result, second, True)),
        f"After {second:.0f} s of training, if the files exist already:",
        table(found, _REFERENCE, lambda result: _at_time(result, second, False)),
        _worth(found),
    ]
    (output / "heat.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    _plot(found, output / "heat.png")


def _with_least_times(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set an arm's times to the minimum over its seeds, because other programs on the machine only add time."""
    for marks in zip(*(result["marks"] for result in results), strict=False):
        least = min(mark["seconds"] for mark in marks)
        for mark in marks:
            mark["own_seconds"], mark["seconds"] = mark["seconds"], least
    return results


def _about(seeds: int, once: int) -> str:
    return (
        "Written by `make experiments`; [the README](../README.md#heat) describes the experiment. Errors are in "
        "kelvin, on simulations that no arm is trained on: root mean square over steps and points, geometric mean "
        f"over {seeds} seeds. Times are the shortest over the seeds. In brackets is the ratio to the {_REFERENCE} at "
        f"the same seeds, with its 95 % interval; below 1 is better than the {_REFERENCE}. With {once:,} steps, each "
        "sample is used once on average."
    )


def _end(result: dict[str, Any]) -> Mark:
    mark: Mark = result["marks"][-1]
    return mark


def _at_steps(steps: float, result: dict[str, Any]) -> Mark | None:
    """Return the last mark up to a number of steps, or None if the training ended much earlier."""
    marks = [mark for mark in result["marks"] if mark["steps"] <= steps]
    return marks[-1] if marks and marks[-1]["steps"] > 0.95 * steps else None


def _at_time(result: dict[str, Any], second: float, produced: bool) -> Mark | None:
    """Return the last mark up to a number of seconds, or None if there is none yet."""
    before = result.get("produced_s", 0.0) if produced else 0.0
    marks = [mark for mark in result["marks"] if before + mark["seconds"] <= second]
    return marks[-1] if marks else None


def _worth(found: Found) -> str:
    """Return a paragraph on the cost of the runs and the limits of online training."""
    told = []
    for arm, results in found.items():
        seconds = sorted(_end(result).get("own_seconds", _end(result)["seconds"]) for result in results)
        before = results[0].get("produced_s", 0.0)
        files = f", and {before:.0f} s for the files" if before else ""
        told.append(f"{arm}: {seconds[0]:.0f} to {seconds[-1]:.0f} s{files}")
    return (
        f"Duration of the runs: {'; '.join(told)}. Training online saves the time to produce the files, and the disk "
        "space. A training step online is not worth more than one from a file: if the files exist already, or if many "
        "models are trained on them, it saves nothing."
    )


def _plot(found: Found, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(18, 5), layout="constrained", sharey=True)
    titles = ("steps of training", "seconds of training", "seconds, with production")
    for arm, results in found.items():
        n = min(len(result["marks"]) for result in results)
        marks = [result["marks"][:n] for result in results]
        errors = np.exp(np.mean([[np.log(mark["p99"]) for mark in of_seed] for of_seed in marks], axis=0))
        steps = np.mean([[mark["steps"] for mark in of_seed] for of_seed in marks], axis=0)
        seconds = np.mean([[mark["seconds"] for mark in of_seed] for of_seed in marks], axis=0)
        for axis, x in zip(axes, (steps, seconds, seconds + results[0].get("produced_s", 0.0)), strict=True):
            axis.loglog(x, errors, marker=".", label=arm)
    for axis, title in zip(axes, titles, strict=True):
        axis.set(xlabel=title)
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="99th percentile of the error, K")
    axes[0].legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
