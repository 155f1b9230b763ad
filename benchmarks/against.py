"""Compares the stream's speed with another checkout's: pairs of jobs take turns until the ratio is known well.

    python -m benchmarks.against ../before --sizes 8192 262144 8388608
    python -m benchmarks.against . --sizes 65536 --here samples.statistics=true
    python -m benchmarks.against . --sizes 8192 65536 1048576 --carried
    python -m benchmarks.against . --sizes 65536 1048576 --varying --both buffer.policy=firo --both buffer.watermark=32
    python -m benchmarks.against . --sizes 65536 --constants
    python -m benchmarks.against . --sizes 1024 8388608 --lent
    python -m benchmarks.against . --sizes 1048576 --rows numbered --row-bytes 256
    python -m benchmarks.against ../before --sizes 65536 1048576 --loading batches
    python -m benchmarks.against --edges staged held

The other checkout needs its own environment, made by `make setup`. Name this checkout itself to measure the cost of a
job-file key, or of one of these: a solver that is not a rank of the job (--carried); samples of varying length, 0.5 to
1.5 times the size (--varying); a constant of 1 MB per simulation, which counts as moved bytes, with simulations of 100
steps in both jobs (--constants); 8 arrays that are lent in turn instead of put (--lent); rows of four ranks that are
placed by maps or gathered from strided memory instead of contiguous blocks (--rows, see turns_rows.c).
With --loading there is no solver: one loader sends batches of this many bytes, by mpidata.DataLoader or, as shuffled
rows, by FileDataset. With --edges, each named edge (edges.py; default: all) is compared with its limit at its own
sizes; some limits are hand-written code. Values without a limit, such as dispatches per second, are measured alone
until their interval is narrower than 0.06 of the value. Status 1 means that a goal is missed. A pair is one job of each
checkout. Both run at the same time and take turns: while one moves a number of samples, the other waits, so that both
see the same machine.
Single turns vary by half. A pair's ratio is the geometric mean over its turns without the top and bottom tenth. The
median of the pairs' ratios has a 90 % bootstrap interval (B. Efron, "Bootstrap methods: another look at the
jackknife", Annals of Statistics 7, 1979); pairs are added until it is narrower than 0.06. Status 1 also means that the
median is below 0.95 or that the interval ends below 0.97.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks import edges
from benchmarks.contender import ROOT
from benchmarks.pairs import NARROW, Estimate, compare
from benchmarks.sides import CONSTANT, LOADING, ROWS, SPECIAL, STEPS, Way

__all__ = ["main"]

_FIGURE_S = 2.0  # per measurement of a value without a limit


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print how the two compare at each size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=sys.modules[__name__].__doc__)
    parser.add_argument("other", type=Path, nargs="?", default=ROOT, help="folder of the other checkout")
    figures = edges.figures(_FIGURE_S)
    names = [one.name for one in [*edges.EDGES, *figures]]
    parser.add_argument("--edges", nargs="*", choices=names, help="beside their limits, and no other checkout")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8 << 10, 256 << 10, 8 << 20], help="bytes of a sample")
    parser.add_argument("--turns", type=int, default=30, help="of each job of a pair")
    parser.add_argument("--seconds", type=float, default=0.15, help="of a turn, about")
    parser.add_argument("--pairs", type=int, default=20, help="at least")
    parser.add_argument("--most", type=int, default=80, help="pairs, at most")
    parser.add_argument("--here", action="append", default=[], metavar="KEY=VALUE", help="change this job file")
    parser.add_argument("--both", action="append", default=[], metavar="KEY=VALUE", help="change both job files")
    parser.add_argument("--carried", action="store_true", help="this solver is not a rank of the job")
    parser.add_argument("--varying", action="store_true", help="these samples have lengths of their own")
    parser.add_argument("--constants", action="store_true", help="these simulations have a constant of 1 MB")
    parser.add_argument("--lent", action="store_true", help="this solver lends 8 arrays in turn, and puts none")
    parser.add_argument("--rows", choices=ROWS, default="", help="how these rows lie, beside contiguous blocks")
    parser.add_argument("--row-bytes", type=int, default=4, help="of a row")
    parser.add_argument(
        "--loading", choices=LOADING, default="", help="no stream: batches of these bytes from a loader"
    )
    given = parser.parse_args(arguments)
    if min(given.pairs, given.most) < 2:
        parser.error("--pairs and --most are at least 2: one pair has no interval.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended by SIGTERM."))  # also ends the jobs
    if given.edges is not None:
        chosen = given.edges or names
        missed = [_edge(edge, given.pairs, given.most) for edge in edges.EDGES if edge.name in chosen]
        missed += [_figure(one, given.pairs, given.most) for one in figures if one.name in chosen]
        return int(any(missed))
    special = next((name for name in SPECIAL if getattr(given, name, False)), given.rows or given.loading)
    plain = given.loading or ("simulations" if given.constants else "blocks" if given.rows else "")
    ways = [
        Way(ROOT, given.both + given.here, special, given.row_bytes),
        Way(given.other.resolve(), given.both, plain, given.row_bytes),
    ]
    ratios: dict[int, list[float]] = {size: [] for size in given.sizes}
    for number in range(given.most):
        for size in given.sizes:
            if number >= given.pairs and Estimate.of(ratios[size]).known:
                continue
            # The side that starts first alternates from pair to pair.
            ratio, told = compare(ways, size, given.turns, given.seconds, number % 2 == 1)
            counted = 1 + CONSTANT / (STEPS * size) if given.constants else 1.0
            ratios[size].append(counted * ratio)
            print(f"{number + 1:3d}  {size:8d} bytes  {ratios[size][-1]:.3f}  ({told})", flush=True)
    estimates = {size: Estimate.of(found) for size, found in ratios.items()}
    for size, estimate in estimates.items():
        words = "as fast" if estimate.as_fast else "slower"
        print(f"{size} bytes: {estimate}{'' if estimate.known else ', still wide'}: {words}", flush=True)
    return 0 if all(estimate.known and estimate.as_fast for estimate in estimates.values()) else 1


def _edge(edge: edges.Edge, pairs: int, most: int) -> bool:
    """Measure an edge; return whether it misses a goal."""
    missed = False
    for size, goal in edge.goals.items():
        ratios: list[float] = []
        while len(ratios) < most and (len(ratios) < pairs or not Estimate.of(ratios).known):
            ratios.append(edge.measure(size, len(ratios) % 2 == 1))
            print(f"{len(ratios):3d}  {edge.name:10s} {size:8d} bytes  {ratios[-1]:.3f}", flush=True)
        estimate = Estimate.of(ratios)
        met = estimate.median >= goal
        missed = missed or not met
        print(f"{edge.name}, {size} bytes: {estimate}, goal {goal:g}: {_judged(met)}", flush=True)
    return missed


def _figure(one: edges.Figure, times: int, most: int) -> bool:
    """Measure a figure; return whether it misses its goal."""
    values: list[float] = []
    while len(values) < most and (len(values) < times or not Estimate.of(values).known_within(NARROW)):
        values.append(one.measure())
        print(f"{len(values):3d}  {one.name:13s} {values[-1]:.4g}", flush=True)
    estimate = Estimate.of(values)
    met = one.meets(estimate.median)
    told = f"{estimate.median:.4g} ({estimate.low:.4g} to {estimate.high:.4g}), {len(values)} times"
    print(f"{one.name}: {told}, goal {one.goal:g}: {_judged(met)}", flush=True)
    return not met


def _judged(met: bool) -> str:
    return "met" if met else "missed"


if __name__ == "__main__":
    sys.exit(main())
