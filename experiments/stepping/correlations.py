"""How the measures in losses.csv relate to the errors of the model."""

from __future__ import annotations

import csv
from pathlib import Path

from scipy import stats

__all__ = ["MEASURES", "correlations"]

MEASURES = ("mean", "excess", "difficulty")


def correlations(losses: Path, errors: dict[str, float]) -> dict[str, float]:
    """Return Spearman's rank correlation between each measure in losses.csv and the errors of the simulations."""
    with losses.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["simulation"] in errors]
    known = [errors[row["simulation"]] for row in rows]
    return {name: float(stats.spearmanr([float(row[name]) for row in rows], known).statistic) for name in MEASURES}
