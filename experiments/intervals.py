"""Whether two arms differ: ratios of their errors over the same seeds, with intervals of the paired bootstrap."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Ratio"]

_EXACT_UP_TO, _DRAWS = 6, 20_000


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of ratios over seeds, and its interval of 95 %."""

    middle: float
    low: float
    high: float

    @property
    def distinguishable(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low > 1 or self.high < 1

    @classmethod
    def of(cls, ours: Sequence[float], others: Sequence[float]) -> Ratio:
        """Compare two arms, seed by seed.

        Notes
        -----
        Percentile bootstrap of the mean log ratio (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
        chapter 13): over all draws of the seeds with replacement where these are few, else 20,000 of them.
        """
        logs = np.log(np.asarray(ours, float) / np.asarray(others, float))
        n = len(logs)
        if n <= _EXACT_UP_TO:
            draws = np.array(list(itertools.product(range(n), repeat=n)))
        else:
            draws = np.random.default_rng(0).integers(0, n, (_DRAWS, n))
        low, high = np.quantile(logs[draws].mean(axis=1), [0.025, 0.975])
        return cls(float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high)))

    def __str__(self) -> str:
        mark = "" if self.distinguishable else ", not distinguishable"
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f}{mark})"
