"""The errors of a model on held-out simulations, as a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["QUANTITIES", "quantities"]

QUANTITIES = {"worst5": "worst 5 %", "mean": "mean", "p50": "median", "p99": "p99", "max": "max"}
_WORST = 0.05


def quantities(errors: np.ndarray[Any, Any]) -> dict[str, float]:
    """Summarize the errors of simulations, [n]: mean of the worst 5 %, mean, median, 99th percentile and maximum."""
    ordered = np.sort(errors)
    worst = ordered[-max(1, round(_WORST * len(ordered))) :].mean()
    found = (worst, errors.mean(), np.median(errors), np.quantile(errors, 0.99), ordered[-1])
    return {name: float(f"{x:.5g}") for name, x in zip(QUANTITIES, found, strict=True)}
