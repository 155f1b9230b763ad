"""Tables of errors, one line per arm, with ratios to one of the arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.errors import QUANTITIES
from experiments.intervals import Ratio

__all__ = ["by_arm", "table"]

Mark = Mapping[str, Any]


def by_arm(results: Mapping[str, Any], arms: Sequence[str], seeds: Sequence[int]) -> dict[str, list[Any]]:
    """Group the results of runs named `arm seed`, for the seeds that all arms have, so that all are pairs.

    Arms without any result are left out.
    """
    arms = [arm for arm in arms if any(f"{arm} {seed}" in results for seed in seeds)]
    there = [seed for seed in seeds if all(f"{arm} {seed}" in results for arm in arms)]
    return {arm: [results[f"{arm} {seed}"] for seed in there] for arm in arms} if arms and there else {}


def table(found: Mapping[str, Sequence[Any]], reference: str, at: Callable[[Any], Mark | None]) -> str:
    """Return a table of each arm's results by seed; `at` returns the errors of a result, or None if it has none."""
    known = [
        name for name in QUANTITIES if any(name in (at(one) or {}) for results in found.values() for one in results)
    ]
    lines = ["| arm | " + " | ".join(QUANTITIES[name] for name in known) + " |", "| --- |" + " ---: |" * len(known)]
    for arm, results in found.items():
        marks = [at(result) for result in results]
        others = [at(result) for result in found[reference]] if arm != reference else []
        lines.append(f"| {arm} | " + " | ".join(_cell(marks, others, quantity) for quantity in known) + " |")
    return "\n".join(lines)


def _cell(marks: Sequence[Mark | None], reference: Sequence[Mark | None], quantity: str) -> str:
    ours = [mark[quantity] for mark in marks if mark and quantity in mark]
    if len(ours) < len(marks):
        return "–"
    text = f"{np.exp(np.mean(np.log(ours))):.3g}"
    others = [mark[quantity] for mark in reference if mark]
    if len(others) < len(ours):
        return text
    return f"{text} [{Ratio.of(ours, others)}]"
