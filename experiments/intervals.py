"""Whether two arms differ: ratios of their errors over the same seeds, with intervals and exact tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Ratio", "holm", "spread"]

# This number of pairs has a million sign changes.
_MOST_EXACT = 20


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of ratios over seeds, its 95 % interval, and its p-value if the arms did not differ.

    Attributes
    ----------
    logs : ndarray, float64, shape (seeds,)
        Logarithms of the ratios.
    middle, low, high : float
        The t-interval of their mean.
    """

    logs: npt.NDArray[np.float64]
    middle: float
    low: float
    high: float

    @cached_property
    def p(self) -> float:
        """Two-sided p of the exact sign-flip test of the mean (Fisher, The Design of Experiments, 1935, section 21)."""
        from scipy import stats

        if self.low == self.high:
            return min(1.0, 2.0 ** (1 - len(self.logs)))
        data, ways = (self.logs,), np.inf if len(self.logs) <= _MOST_EXACT else 100_000
        test = stats.permutation_test(data, np.mean, permutation_type="samples", n_resamples=ways, vectorized=True)
        return float(test.pvalue)

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low > 1 or self.high < 1

    @classmethod
    def of(cls, ours: Sequence[float], others: Sequence[float]) -> Ratio:
        """Compare two arms seed by seed; with one seed, or if all ratios are equal, the interval has no width."""
        from scipy import stats

        logs = np.log(np.asarray(ours, float) / np.asarray(others, float))
        middle = float(np.exp(logs.mean()))
        if np.ptp(logs) < 1e-12:
            return cls(logs, middle, middle, middle)
        low, high = np.exp(stats.ttest_1samp(logs, 0.0).confidence_interval(0.95))
        return cls(logs, middle, float(low), float(high))

    def __str__(self) -> str:
        mark = "" if self.distinguishable else ", not distinguishable"
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f}{mark})"


def holm(values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    order = np.argsort(values)
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.sort(values) * np.arange(len(values), 0, -1))
    return [float(value) for value in np.minimum(1.0, adjusted)]


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms."""
    return float(np.log(np.asarray(values, float)).std(ddof=1))
