"""The page of the experiments on surrogates that step forward in time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.intervals import Ratio, holm, spread
from experiments.runs import Results
from experiments.stepping.compared import Compared, Found
from experiments.tables import table

__all__ = ["TITLES", "render"]

_REFERENCE = "uniform"
TITLES = {
    "burgers": "Burgers' equation",
    "kuramoto-sivashinsky": "the Kuramoto-Sivashinsky equation",
    "gray-scott": "the Gray-Scott system",
}
_HEADS = {"tuning": "Tuning of the samplers", "samplers": "Comparison of samplers"}


def render(compared: Compared, results: Results, output: Path) -> None:
    """Write a page and a plot of the available results."""
    name, by_equation = compared.name, {one: compared.found(one, results) for one in compared.equations}
    found = {equation: of_arms for equation, of_arms in by_equation.items() if of_arms}
    if not found:
        return
    first = next(iter(found.values()))
    parts = [
        f"# {_HEADS[name]}",
        "Written by `make experiments`; [the README](../README.md#samplers) describes the experiment. Errors are root "
        "mean squares over whole simulations of which only the initial state is given, and that no arm is trained on: "
        f"geometric mean over {len(first[_REFERENCE])} seeds. In brackets is the ratio to {_REFERENCE} at the same "
        f"seeds, with the 95 % t-interval of its logarithm; below 1 is better than {_REFERENCE}. Unless stated "
        f"otherwise, each run has {compared.simulations} simulations, the first 50 of which are the same in all arms, "
        f"and {first[_REFERENCE][0]['steps']:,} training steps.",
    ]
    for equation, of_arms in found.items():
        parts += [f"## {TITLES[equation][0].upper()}{TITLES[equation][1:]}"]
        parts += [table(of_arms, _REFERENCE, lambda result: result), _spread(of_arms), _cost(of_arms)]
    parts += ["## All problems", _tested(found), _hours(results)]
    parts += [f"![errors, and simulations along the first parameter]({name}.png)"]
    (output / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    _plot(found, output / f"{name}.png")


def _spread(found: Found) -> str:
    if len(found[_REFERENCE]) < 2:
        return "With one seed the standard deviation is unknown."
    told = []
    for quantity, name in (("worst5", "worst 5 %"), ("mean", "mean")):
        last = spread([result["last"][quantity] for result in found[_REFERENCE]])
        told.append(
            f"{name} {spread([result[quantity] for result in found[_REFERENCE]]):.3f} ({last:.3f} with the last "
            "weights)"
        )
    return f"Standard deviation, over the seeds, of the logarithm of the error of {_REFERENCE}: {', '.join(told)}."


def _cost(found: Found) -> str:
    told = []
    for arm, results in found.items():
        sampler, training = (np.mean([result[name] for result in results]) for name in ("sampler_s", "training_s"))
        told.append(f"{arm}: {sampler:.2f} s ({100 * sampler / training:.1f} %)")
    return f"CPU time of the sampler (and its share of that of the training): {'; '.join(told)}."


def _hours(results: Results) -> str:
    """Return a sentence on the CPU time of all runs, including seeds that not all arms have."""
    seconds = sum(result["training_s"] + result["sampler_s"] for result in results.values())
    return f"The {len(results)} runs took {seconds / 3600:.1f} hours of CPU time for training and samplers."


def _tested(found: Mapping[str, Found]) -> str:
    """Return a table of the exact tests of the worst 5 %, adjusted for the number of problems."""
    lines = ["| arm | problem | ratio of the worst 5 % | p | p, adjusted |", "| --- | --- | ---: | ---: | ---: |"]
    arms = dict.fromkeys(arm for of_arms in found.values() for arm in of_arms if arm != _REFERENCE)
    for arm in arms:
        ratios = {}
        for equation, of_arms in found.items():
            if arm in of_arms:
                ours, others = ([result["worst5"] for result in of_arms[name]] for name in (arm, _REFERENCE))
                ratios[equation] = Ratio.of(ours, others)
        adjusted_ps = holm([ratio.p for ratio in ratios.values()])
        for (equation, ratio), adjusted in zip(ratios.items(), adjusted_ps, strict=True):
            lines.append(f"| {arm} | {TITLES[equation]} | {ratio} | {ratio.p:.2g} | {adjusted:.2g} |")
    about = (
        f"Ratios to {_REFERENCE}, p of the exact sign-flip test over the seeds, and p adjusted for the number of "
        "problems by Holm's method."
    )
    return f"{about}\n\n" + "\n".join(lines)


def _plot(found: Mapping[str, Found], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(found), 2, figsize=(13, 5 * len(found)), layout="constrained", squeeze=False)
    for (left, right), (equation, of_arms) in zip(axes, found.items(), strict=True):
        for row, (arm, results) in enumerate(of_arms.items()):
            values = np.array([[result["worst5"], result["mean"]] for result in results])
            left.plot(*values.T[::-1], ".", label=arm, color=f"C{row % 10}")
            drawn = np.sum([result["drawn"] for result in results], axis=0)[-1]
            right.plot(np.arange(len(drawn)) + 0.5, drawn / drawn.mean(), label=arm, color=f"C{row % 10}")
        left.set(
            title=TITLES[equation], xlabel="mean error", ylabel="error of the worst 5 %", xscale="log", yscale="log"
        )
        right.set(title="the last quarter of the simulations", xlabel="tenth of the first parameter", ylabel="density")
        left.legend()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
