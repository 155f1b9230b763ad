"""Is the stream as fast as in another checkout? Pairs of measurements, alternated, until the ratio is known well.

    python -m benchmarks.against ../before --sizes 8192 262144 8388608

The other checkout has an environment of its own, made by `make setup`. The median of the ratios has a 90 % interval by
the bootstrap (B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979); pairs are
added until it is narrower than 0.06. Status 1 where the median is below 0.95 or the interval ends below 0.97.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from benchmarks.contender import ROOT, BenchmarkError
from benchmarks.figures import Measurement

__all__ = ["Estimate", "main"]

NARROW, MEDIAN, UPPER = 0.06, 0.95, 0.97
_LIMIT_S = 180.0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Median of the ratios, this checkout's rate to the other's, and its 90 % interval."""

    median: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Estimate:
        """From at least two pairs."""
        interval = scipy.stats.bootstrap(
            (np.asarray(ratios),), np.median, confidence_level=0.9, method="percentile", rng=0
        ).confidence_interval
        return cls(statistics.median(ratios), float(interval.low), float(interval.high), len(ratios))

    @property
    def known(self) -> bool:
        """The interval is narrow enough."""
        return self.high - self.low < NARROW

    @property
    def as_fast(self) -> bool:
        """This checkout is as fast as the other."""
        return self.median >= MEDIAN and self.high >= UPPER

    def __str__(self) -> str:
        """For the table."""
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f}), {self.pairs} pairs"


def measure(checkout: Path, contender: str, size: int, seconds: float) -> float:
    """Samples a second of a contender in a checkout; raises BenchmarkError."""
    with tempfile.TemporaryDirectory(prefix="against-") as folder:
        command = [str(checkout / ".venv" / "bin" / "python"), "-m", "benchmarks", "--only", contender]
        command += ["--rounds", "1", "--seconds", str(seconds), "--sizes", str(size), "--output", folder]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode != 0:
            raise BenchmarkError(f"{checkout}: {done.stdout[-500:]}{done.stderr[-500:]}")
        values = json.loads((Path(folder) / "stream.json").read_text(encoding="utf-8"))
    return next(Measurement(**one).rate for one in values["measurements"] if one["contender"] == contender)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and say how the two compare at each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=sys.modules[__name__].__doc__)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--contender", default="mpidata fifo", help="a row of the stream benchmark")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8 << 10, 256 << 10, 8 << 20], help="bytes of a sample")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--pairs", type=int, default=20, help="at least")
    parser.add_argument("--most", type=int, default=80, help="pairs, at most")
    given = parser.parse_args(arguments)
    checkouts = [ROOT, given.other.resolve()]
    ratios: dict[int, list[float]] = {size: [] for size in given.sizes}
    for number in range(given.most):
        for size in given.sizes:
            if number >= given.pairs and Estimate.of(ratios[size]).known:
                continue
            # Each comes first in every other pair.
            rates = {
                one: measure(one, given.contender, size, given.seconds) for one in checkouts[:: 1 - 2 * (number % 2)]
            }
            ratios[size].append(rates[checkouts[0]] / rates[checkouts[1]])
            print(f"{number + 1:3d}  {size:8d} bytes  {ratios[size][-1]:.3f}", flush=True)
    estimates = {size: Estimate.of(found) for size, found in ratios.items()}
    for size, estimate in estimates.items():
        words = "as fast" if estimate.as_fast else "slower"
        print(f"{size} bytes: {estimate}{'' if estimate.known else ', still wide'}: {words}", flush=True)
    return 0 if all(estimate.known and estimate.as_fast for estimate in estimates.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
