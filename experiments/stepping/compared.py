"""The arms that an experiment compares, and its results by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.runs import Results
from experiments.tables import by_arm

__all__ = ["Compared", "Found"]

Found = dict[str, list[dict[str, Any]]]  # results of an arm's seeds


@dataclass(frozen=True)
class Compared:
    """Arms on equations; `name` is the experiment's, and each run has `simulations` simulations."""

    name: str
    equations: Sequence[str]
    arms: Sequence[str]
    seeds: Sequence[int]
    simulations: int

    def found(self, equation: str, results: Results) -> Found:
        """Group the results of runs named `equation arm seed`; empty if no seed has all arms."""
        of_equation = {run.removeprefix(f"{equation} "): result for run, result in results.items()}
        return by_arm(of_equation, self.arms, self.seeds)
