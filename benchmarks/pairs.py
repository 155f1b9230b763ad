"""Two ways to move samples that take turns, and the estimate of their ratio."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from benchmarks.contender import BATCH, Cell
from benchmarks.sides import Side, Way

__all__ = ["NARROW", "Estimate", "compare", "pair"]

NARROW, MEDIAN, UPPER = 0.06, 0.95, 0.97
_START_LIMIT_S = 120.0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Median of the ratios of this checkout's rate to the other's, and its 90 % interval."""

    median: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Estimate:
        """Estimate from at least two pairs."""
        interval = scipy.stats.bootstrap(
            (np.asarray(ratios),), np.median, confidence_level=0.9, method="percentile", rng=0
        ).confidence_interval
        return cls(statistics.median(ratios), float(interval.low), float(interval.high), len(ratios))

    @property
    def known(self) -> bool:
        """Whether the interval is narrow enough."""
        return self.high - self.low < NARROW

    def known_within(self, part: float) -> bool:
        """Return whether the interval is narrower than this part of the median."""
        return self.high - self.low < part * abs(self.median)

    @property
    def as_fast(self) -> bool:
        """Whether this checkout is as fast as the other."""
        return self.median >= MEDIAN and self.high >= UPPER

    def __str__(self) -> str:
        """Return the text for the table."""
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f}), {self.pairs} pairs"


def pair(ways: Sequence[Way], size: int, turns: int, seconds: float) -> list[float]:
    """Return the ratios of the first way's rate to the second's, one per turn; raise BenchmarkError on failure."""
    with tempfile.TemporaryDirectory(prefix="against-") as folder, contextlib.ExitStack() as stack:
        sides = []
        for number, way in enumerate(ways):
            own = Path(folder) / str(number)
            own.mkdir()
            cell = Cell.plan(own, size, seconds)
            sides.append(Side(way, cell))
            stack.callback(sides[-1].close)
        for side in sides:
            side.turn(cell.warm // BATCH, _START_LIMIT_S)  # fills caches and pools
        batches = 4
        while (needed := max(side.turn(batches) for side in sides)) < 0.7 * seconds:
            batches = math.ceil(batches * min(8.0, seconds / needed))
        ratios = []
        for number in range(turns):
            order = [0, 1] if number % 2 else [1, 0]
            took = {one: sides[one].turn(batches) for one in order}
            ratios.append(took[1] / took[0])
        return ratios


def compare(ways: Sequence[Way], size: int, turns: int, seconds: float, swapped: bool) -> tuple[float, str]:
    """Return the ratio of a pair and a note on its turns; the second way starts first if `swapped`."""
    found = pair(ways[::-1] if swapped else ways, size, turns, seconds)
    ratio = float(np.exp(scipy.stats.trim_mean(np.log(found), 0.1)))
    return 1 / ratio if swapped else ratio, f"turns {min(found):.2f} to {max(found):.2f}"
