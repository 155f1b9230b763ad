"""Edges: the cases in which the stream and loaders are furthest from the machine's limit, each with a goal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks import dispatching, loaders, waiting_ranks
from benchmarks.cases import Case, Plot, Settings, curves, load, page, run_rounds
from benchmarks.contender import ROOT
from benchmarks.pairs import Estimate, compare
from benchmarks.rows import ROWS, STORE, write_parts
from benchmarks.sides import Way
from benchmarks.table import size_name

__all__ = ["ABOUT", "EDGES", "NAME", "Edge", "Figure", "figures", "render", "run"]

NAME = "edges"
ABOUT = "each edge beside its limit: lent arrays, reservoirs, small samples, loaders, many ranks"
KB, MB = 1 << 10, 1 << 20
_TURNS = 20
_RESERVOIR = ("buffer.policy=reservoir", "buffer.watermark=32")
_FRESH_S, _TURN_S = 0.5, 0.15
ROWS_BYTES = 8192 * 84  # bytes of a batch, as in rows.py


@dataclasses.dataclass(frozen=True)
class Edge:
    """A way to move samples, its limit, and goals for the ratio of the two rates.

    Attributes
    ----------
    name : str
        One word.
    about : str
        Text for the table.
    ours, limit : Way
        The compared ways, which take turns.
    goals : mapping
        Lowest accepted ratio, by bytes of a sample.
    seconds : float
        Approximate length of a turn.
    """

    name: str
    about: str
    ours: Way
    limit: Way
    goals: Mapping[int, float]
    seconds: float = _TURN_S

    def measure(self, size: int, swapped: bool) -> float:
        """Return the ratio of one pair."""
        return compare([self.ours, self.limit], size, _TURNS, self.seconds, swapped)[0]


def _here(special: str = "", *changes: str) -> Way:
    return Way(ROOT, changes, special)


EDGES = [
    Edge("lent", "`iput` to `put`", _here("lent"), _here(), {KB: 1.0, 8 * MB: 1.1}),
    Edge(
        "staged",
        "`put` from 8 arrays in turn, to hand-written MPI that also copies them, in huge pages, not gathered",
        _here("arrays"),
        _here("staged"),
        {64 * KB: 0.85, 256 * KB: 0.85, MB: 0.85, 8 * MB: 0.85},
    ),
    Edge(
        "held",
        "`iput`, to hand-written MPI without that copy",
        _here("lent"),
        _here("held"),
        {64 * KB: 0.7, 256 * KB: 0.7, MB: 0.7, 8 * MB: 0.7},
    ),
    Edge(
        "fresh",
        "reservoir, samples drawn for the first time, to fifo",
        _here("fresh", *_RESERVOIR),
        _here("fresh"),
        {64 * KB: 0.7, 256 * KB: 0.7, MB: 0.6, 8 * MB: 0.6},
        _FRESH_S,
    ),
    Edge(
        "sampled",
        "reservoir, all draws, to a gather in C of as many random samples of a pool of the same bytes",
        _here("", *_RESERVOIR),
        _here("sampled"),
        {64 * KB: 0.8, 256 * KB: 0.8, MB: 0.8, 8 * MB: 0.8},
    ),
    Edge("gathered", "fifo, to hand-written MPI, gathered", _here(), _here("gathered"), {KB: 0.5}),
    Edge("halves", "blocks of two ranks, to one rank", _here("halves"), _here(), {8 * KB: 0.75, 64 * KB: 0.85}),
    Edge("parcels", "`DataLoader`, to parcels by hand", _here("batches"), _here("parcels"), {MB: 0.6}),
    Edge("rows", "`FileDataset`, rows, to hand-written MPI", _here("rows"), _here("rows sent"), {ROWS_BYTES: 0.7}),
]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A value that is measured alone, and its goal."""

    name: str
    about: str
    measure: Callable[[], float]
    goal: float
    most: bool  # the goal is an upper bound

    def meets(self, value: float) -> bool:
        """Return whether the value meets the goal."""
        return value <= self.goal if self.most else value >= self.goal


def _cpu_of_loaders() -> float:
    return loaders.measure(8, 1)["cpu_ns"] / loaders.measure(1, 1)["cpu_ns"]


def _dispatches(seconds: float, ranks: int) -> float:
    return dispatching.measure(ranks, seconds)["per_second"]


def figures(seconds: float) -> list[Figure]:
    """Return all figures; each measurement takes `seconds`."""
    each = [
        Figure(f"dispatches {n}", f"dispatches a second, {n} ranks", partial(_dispatches, seconds, n), 50_000, False)
        for n in (2, 8, 64)
    ]
    return [
        Figure("loaders", "CPU of a row, 8 loaders to 1", _cpu_of_loaders, 1.3, True),
        Figure("start", "first dispatch of 64 ranks, s after a bare start", waiting_ranks.start_beside_bare, 3.0, True),
        *each,
        Figure("idle", "idle job of 64 ranks, share of a core", waiting_ranks.idle_share, 0.1, True),
    ]


def run(settings: Settings) -> list[str]:
    """Measure and write the page; return what failed."""
    write_parts(STORE, ROWS)
    cases = [Case(_name(edge, size), _Pairs(edge, size)) for edge in EDGES for size in edge.goals]
    alone = [Case(one.name, partial(_value, one.measure)) for one in figures(settings.seconds)]
    return run_rounds(NAME, cases + alone, settings, render)


class _Pairs:
    """Measures an edge; the way that starts first alternates from pair to pair."""

    def __init__(self, edge: Edge, size: int) -> None:
        self._edge, self._size, self._swapped = edge, size, False

    def __call__(self) -> dict[str, float]:
        self._swapped = not self._swapped
        return {"value": self._edge.measure(self._size, self._swapped)}


def _value(measure: Callable[[], float]) -> dict[str, float]:
    return {"value": measure()}


def _name(edge: Edge, size: int) -> str:
    return f"{edge.name}, {size_name(size)}"


def _line(about: str, size: str, values: Sequence[float], goal: float, most: bool) -> str:
    if len(values) < 2:
        return f"| {about} | {size} | – | {goal:g} | – |"
    known = Estimate.of(values)
    met = known.median <= goal if most else known.median >= goal
    told = " to ".join(f"{value:.3g}" for value in (known.low, known.high))
    return f"| {about} | {size} | {known.median:.3g} ({told}) | {goal:g} | {'met' if met else 'missed'} |"


def render(output: Path) -> None:
    """Write the page from the stored results."""
    contents, _ = load(output, NAME)
    values = {name: [v for v in of["value"] if v is not None] for name, of in contents["values"].items() if of}
    lines = ["| what | size | median (90 % interval) | goal | |", "| --- | ---: | ---: | ---: | --- |"]
    for edge in EDGES:
        lines += [
            _line(edge.about, size_name(size), values.get(_name(edge, size), []), goal, False)
            for size, goal in edge.goals.items()
        ]
    lines += [_line(one.about, "", values.get(one.name, []), one.goal, one.most) for one in figures(0.0)]
    (output / f"{NAME}.md").write_text(page(NAME, "Edges", contents, ["\n".join(lines)]), encoding="utf-8")
    results = load(output, NAME)[1]
    ratios = {
        edge.name: [(size, results.spread(_name(edge, size), "value")) for size in edge.goals]
        for edge in EDGES
        if len(edge.goals) > 1
    }
    curves(output / f"{NAME}.png", [Plot(ratios, "bytes of a sample", "ratio to the limit", log="x")])
