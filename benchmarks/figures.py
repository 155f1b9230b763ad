"""Medians, spreads and ratios of measurements."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Sequence

__all__ = ["Figures", "Measurement", "Spread"]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One measurement of one contender at one size, in one round."""

    contender: str
    sample_bytes: int
    round: int
    samples: int
    seconds: float

    @property
    def rate(self) -> float:
        """Samples per second."""
        return self.samples / self.seconds


@dataclasses.dataclass(frozen=True)
class Spread:
    """Median of some values, with the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """Return the spread of the values, or None if there are none."""
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1]) if ordered else None

    def scaled(self, factor: float) -> Spread:
        """Return all three values times a factor."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)


class Figures:
    """The measurements, by rows of the table.

    Parameters
    ----------
    measurements : sequence of Measurement
        Measurements of all rounds.
    rows : dict of str to sequence of str
        The contenders of each row. If there are several, the one with the highest median at a size represents the row
        at that size. It is chosen by all rounds, because the best of each round would be too high.
    """

    def __init__(self, measurements: Sequence[Measurement], rows: dict[str, Sequence[str]]) -> None:
        self._rates: dict[tuple[str, int], dict[int, float]] = {}
        for one in measurements:
            self._rates.setdefault((one.contender, one.sample_bytes), {})[one.round] = one.rate
        self.rows = rows
        self.sizes = sorted({one.sample_bytes for one in measurements})

    def best(self, row: str, sample_bytes: int) -> str | None:
        """Return the contender that represents a row at a size."""
        measured = [name for name in self.rows[row] if (name, sample_bytes) in self._rates]
        return max(measured, key=lambda n: statistics.median(self._rates[n, sample_bytes].values()), default=None)

    def rate(self, row: str, sample_bytes: int) -> Spread | None:
        """Return samples per second."""
        return Spread.of(self._of(row, sample_bytes).values())

    def ratio(self, row: str, reference: str, sample_bytes: int) -> Spread | None:
        """Return the ratio to the rate of another row, within each round."""
        rates, others = self._of(row, sample_bytes), self._of(reference, sample_bytes)
        return Spread.of(rates[n] / others[n] for n in rates.keys() & others.keys() if others[n] > 0)

    def _of(self, row: str, sample_bytes: int) -> dict[int, float]:
        best = self.best(row, sample_bytes)
        return self._rates[best, sample_bytes] if best else {}
