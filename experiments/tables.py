"""Tables of errors, an arm a line, with ratios to one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.intervals import Ratio

__all__ = ["QUANTITIES", "table"]

Mark = Mapping[str, Any]
QUANTITIES = ("mean", "p99", "max")


def table(found: Mapping[str, Sequence[Any]], reference: str, at: Callable[[Any], Mark | None]) -> str:
    """Make a table from the results of each arm's seeds; `at` gives the errors of a result, None where it has none."""
    lines = ["| arm | " + " | ".join(QUANTITIES) + " |", "| --- |" + " ---: |" * len(QUANTITIES)]
    for arm, results in found.items():
        marks = [at(result) for result in results]
        others = [at(result) for result in found[reference]] if arm != reference else []
        lines.append(f"| {arm} | " + " | ".join(_cell(marks, others, quantity) for quantity in QUANTITIES) + " |")
    return "\n".join(lines)


def _cell(marks: Sequence[Mark | None], reference: Sequence[Mark | None], quantity: str) -> str:
    ours = [mark[quantity] for mark in marks if mark]
    if len(ours) < len(marks):
        return "–"
    text = f"{np.exp(np.mean(np.log(ours))):.3g}"
    others = [mark[quantity] for mark in reference if mark]
    if len(others) < len(ours):
        return text
    return f"{text} [{Ratio.of(ours, others)}]"
